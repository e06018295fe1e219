"""numjet.scipy.stats: probability distributions."""

from numjet.scipy.stats import norm as norm
