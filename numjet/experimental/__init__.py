"""numjet.experimental: names that users import from there."""

from numjet.api.callbacks import io_callback as io_callback
from numjet.base.config import enable_x64 as enable_x64
from numjet.experimental.hijax import cur_qdd as cur_qdd
