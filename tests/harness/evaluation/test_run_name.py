"""The folder of a run that was given none: readable, safe as a name, and another one for other settings."""

from harness.evaluation.config import Config
from harness.evaluation.evaluate import run_name, with_overrides


def test_a_run_is_named_by_backbone_benchmark_and_settings() -> None:
    config = Config(backbone="colqwen2=./my finetune", benchmark="/data/my pages")
    assert run_name(config) == f"colqwen2--my_pages--{config.key}"
    assert run_name(Config(backbone="a/b.py", benchmark="x_y-z.1")).startswith("a_b.py--x_y-z.1--")
    assert run_name(with_overrides(config, seed=7)) != run_name(config)


def test_what_is_not_given_stays() -> None:
    config = Config(seed=5, trials=3)
    assert with_overrides(config, seed=None, trials=None) == config
    assert with_overrides(config, seed=0).seed == 0
