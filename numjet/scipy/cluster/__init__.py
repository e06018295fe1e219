"""numjet.scipy.cluster: `vq`, vector quantization."""

from numjet.scipy.cluster import vq as vq
