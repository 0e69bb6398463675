"""Still: a decoder of tests, under which nothing else moves."""

from dear_plugin.decoders import Decoder


class Still(Decoder):
    """Nothing moves along."""

    def settings(self):
        return {}

    @classmethod
    def with_settings(cls, settings):
        return cls(**settings)

    def tensors(self):
        return {}

    def load_state(self, tensors, encoder, sets):
        self.sets = sets

    def fit(self, rows, encoder, sets):
        self.sets = sets

    def encode(self, rows, generator=None):
        return rows[:, None].expand(-1, len(self.sets), -1)

    def decode(self, x, v, values, sets):
        positions = self.sets.positions[sets][:, None].expand(values.shape)
        return x[:, None].expand(-1, values.shape[1], -1).scatter(2, positions, values)
