"""Still: a decoder of tests, under which nothing else moves."""

from dear_plugin.decoders import Decoder


class Still(Decoder):
    """Nothing moves along."""

    def settings(self):
        return {}

    def fit(self, sample, acted, held):
        self.acted = list(acted)

    def encode(self, x, generator=None):
        return x

    def decode(self, x, v, values):
        out = x[:, None].repeat(1, values.shape[1], 1)
        out[..., self.acted] = values
        return out
