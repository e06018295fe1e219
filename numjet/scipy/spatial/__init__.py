"""numjet.scipy.spatial: `transform`, rotations in three dimensions."""

from numjet.scipy.spatial import transform as transform
