"""Arguments of Alibi's other explainers, which say how these search and mean nothing to DEAR."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn

import dear_plugin
from dear_plugin import Decoder

logger = logging.getLogger("dear_alibi")

# Of the constructors of CounterfactualRLTabular, CounterfactualProto, Counterfactual, CEM and
# AnchorTabular.
_MADE = """
    encoder encoder_preprocessor decoder_inv_preprocessor coeff_sparsity coeff_consistency
    latent_dim weight_num weight_cat act_noise act_low act_high replay_buffer_size batch_size
    num_workers shuffle exploration_steps update_every update_after train_steps reward_func
    postprocessing_funcs conditional_func callbacks actor critic optimizer_actor optimizer_critic
    lr_actor lr_critic actor_hidden_dim critic_hidden_dim
    shape kappa beta gamma ae_model enc_model theta use_kdtree learning_rate_init max_iterations
    c_init c_steps eps clip update_num_grad no_info_val write_dir sess distance_fn max_iter
    early_stop lam_init max_lam_steps tol init decay debug dtype
"""
_FITTED = """
    trustscore_kwargs d_type w disc_perc standardize_cat_vars smooth center update_feature_range
"""
_EXPLAINED = """
    diversity num_samples patience tolerance k k_type print_every log_every verbose
    threshold delta tau coverage_samples beam_size stop_on_first max_anchor_size min_samples_start
    n_covered_ex binary_cache_size cache_margin verbose_every
"""
OF_OTHERS = {
    "__init__": frozenset(_MADE.split()),
    "fit": frozenset(_FITTED.split()),
    "explain": frozenset(_EXPLAINED.split()),
}
# What says what is wanted, or what rows are, must not be passed over.
HERE = {
    "Y": "Y_t",
    "target_class": "Y_t",
    "feature_range": "ranges",
    "cat_vars": "category_map",
    "categorical_names": "category_map",
}
_NOT_NAMED = ("self", "of_others")


def without_effect(call: Callable[..., Any], given: Iterable[str]) -> None:
    """Name arguments of other explainers in the log, and refuse those of none.

    Args:
        call: the method of DEAR that was called.
        given: the names of arguments that it does not take.

    Raises:
        ArgumentError: an argument that no explainer takes, or that has another name here; it is a
            `TypeError`.
    """
    names, known = list(given), OF_OTHERS[call.__name__]
    strange = [name for name in names if name not in known]
    if strange:
        own = [name for name in inspect.signature(call).parameters if name not in _NOT_NAMED]
        renamed = [f"{name!r} is {HERE[name]!r} here" for name in strange if name in HERE]
        message = dear_plugin.errors.unknown("arguments", strange, own)
        raise dear_plugin.errors.ArgumentError("; ".join([message, *renamed]))
    if names:
        _warn(names)


def decoder_of(decoder: Any) -> Any:
    """What DEAR decodes with: CounterfactualRL's own network is an argument without effect."""
    if isinstance(decoder, nn.Module) and not isinstance(decoder, Decoder):
        _warn(["decoder"])
        return "transport"
    return decoder


def check_backend(backend: str) -> None:
    """Refuse any backend but torch's.

    Raises:
        ModelError: it is another one.
    """
    if backend != "pytorch":
        raise dear_plugin.errors.ModelError(
            f"backend must be 'pytorch', {backend!r} came; any other framework's model is a"
            " function of label-encoded rows, and needs no backend"
        )


def _warn(names: list[str]) -> None:
    logger.warning("DEAR takes no account of %s: other explainers do", ", ".join(names))
