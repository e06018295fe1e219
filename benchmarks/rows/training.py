"""Training steps."""

import models
from registry import row


def torch_step(torch, loss):
    """The step of models.step, with PyTorch's eager autograd and functional parameters."""
    pytree = torch.utils._pytree

    def train(parameters, *data):
        flat, spec = pytree.tree_flatten(parameters)
        flat = [leaf.detach().requires_grad_() for leaf in flat]
        value = loss(pytree.tree_unflatten(flat, spec), *data)
        gradient = torch.autograd.grad(value, flat)
        with torch.no_grad():
            flat = [p - models.RATE * g for p, g in zip(flat, gradient)]
        return value.detach(), pytree.tree_unflatten(flat, spec)

    return train


def torch_mlp_loss(torch):
    def loss(layers, x, y):
        for layer in layers[:-1]:
            x = torch.tanh(torch.addmm(layer["b"], x, layer["w"]))
        return ((torch.addmm(layers[-1]["b"], x, layers[-1]["w"]) - y) ** 2).mean()

    return loss


def torch_transformer_loss(torch):
    nn = torch.nn.functional
    width, heads, batch, length = models.WIDTH, models.HEADS, models.BATCH, models.LENGTH

    def attention(x, layer):
        split = (x @ layer["query_key_value"]).reshape(batch, length, 3, heads, width // heads)
        query, key, value = (split[:, :, i].transpose(1, 2) for i in range(3))
        mixed = nn.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, width) @ layer["out"]

    def loss(parameters, tokens):
        tokens = tokens.long()
        x = parameters["embedding"][tokens[:, :-1]] + parameters["position"]
        for layer in parameters["layers"]:
            x = x + attention(nn.layer_norm(x, (width,), layer["norm1"]), layer)
            hidden = nn.layer_norm(x, (width,), layer["norm2"]) @ layer["up"] + layer["up_bias"]
            x = x + nn.gelu(hidden, approximate="tanh") @ layer["down"] + layer["down_bias"]
        logits = x @ parameters["head"]
        return nn.cross_entropy(logits.reshape(-1, models.VOCABULARY), tokens[:, 1:].reshape(-1))

    return loss


_TOKENS = models.BATCH * models.LENGTH
row(
    "train_mlp",
    "training step, MLP 4×256, batch 128",
    "train",
    inputs=models.mlp_inputs,
    array=lambda s: s.jit(models.step(s, models.mlp_loss(s))),
    others={"torch": lambda torch: torch_step(torch, torch_mlp_loss(torch))},
    bars={"jax": 0.7},
    # Forward, and the two products of the backward pass (one in the first layer).
    flops=2 * 128 * 256 * 256 * (3 * 4 - 1),
    blas=True,
)
row(
    "train_transformer",
    "training step, 6-layer transformer 8×64×128",
    "train",
    inputs=models.transformer_inputs,
    array=lambda s: s.jit(models.step(s, models.transformer_loss(s))),
    others={"torch": lambda torch: torch_step(torch, torch_transformer_loss(torch))},
    bars={"jax": 0.4},
    flops=3
    * 2
    * _TOKENS
    * (
        models.LAYERS * (12 * models.WIDTH**2 + 2 * models.LENGTH * models.WIDTH)
        + models.WIDTH * models.VOCABULARY
    ),
    blas=True,
    tolerance=2e-3,
)
