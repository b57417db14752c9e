"""ElliCE by the package ellice: the far side of ``method=ellice``.

The data-supported generator: of the training rows that all models accept whose last layer lies in an ellipsoid around
the fitted one, and whose loss is hence hardly worse, the nearest to the person. The library sees the estimator's own
columns, and the model as the layers that the harness tells; candidates are those rows that the person may become.
"""

import ellice
import far
import numpy
import pandas
import torch
from ellice.generators.data_supported import DataSupportedGenerator

LABEL = "the label"
BATCH = 1024  # rows of which the library asks at once


class Ellice:
    r"""Nearest training row that every model of an ellipsoid around the fitted one accepts [1]_.

    .. math::
        \min_i \; & \|x_i - \hat x\|_2 \\
        \text{s.t. } \; & \hat\theta^\top \phi(x_i) - \|Q^{-1/2} \phi(x_i)\|_2 > 0, \quad Q = H / (2 \epsilon)

    The left side is the least score :math:`\theta^\top \phi(x_i)` of all :math:`\theta` with
    :math:`(\theta - \hat\theta)^\top Q (\theta - \hat\theta) \le 1`; for the first class both signs turn.
    :math:`\hat\theta` are the last layer's weights and intercept, :math:`\phi(x)` what that layer takes, and a 1; H is
    the Hessian of its mean log loss over the training rows plus ``regularization_coefficient`` times the identity, and
    :math:`\epsilon` is ``robustness_epsilon``. Distance is between the estimator's own columns.

    References
    ----------
    .. [1] Turbal, B., I. Voitsitska, and L. Semenova (2025). ElliCE: efficient and provably robust algorithmic recourse
       via the Rashomon sets. *NeurIPS*. ellice 0.1.4, https://github.com/BogdanTurbal/ellice
    """

    def __init__(self, problem, settings):
        if "class" not in problem.target or "probability" in problem.target or len(problem.classes) != 2:
            raise far.Refused("ElliCE is run for a wanted class of two only; set 'desired' to a class.")
        try:
            layers = problem.layers()
        except RuntimeError as fault:
            raise far.Refused(f"ElliCE takes linear models and networks ({fault}).") from None
        if layers[-1]["weights"].shape[1] != 1:
            raise far.Refused("ElliCE takes models with one output, above 0 for the second class.")
        if other := {layer["activation"] for layer in layers[:-1]} - {"relu"}:
            raise far.Refused(f"ElliCE is handed networks of ReLUs, not of {min(other)}; choose model=mlp.")
        self.problem, self.wanted = problem, problem.classes.index(problem.target["class"])
        matrix = numpy.asarray(problem.matrix(problem.train), dtype=float)
        frame = pandas.DataFrame(matrix, columns=[str(place) for place in range(matrix.shape[1])])
        frame[LABEL] = [float(label == problem.classes[1]) for label in problem.labels]
        self.names = list(frame.columns.drop(LABEL))
        data = ellice.Data(frame, LABEL, continuous_features=self.names)
        model = ellice.models.load_model(network_of(layers))
        self.generator = DataSupportedGenerator(
            model=model, data=data, eps=settings["robustness_epsilon"], reg_coef=settings["regularization_coefficient"]
        )
        if len(data.df) % BATCH == 1:  # of a batch of one row the library takes no candidates
            data.df = pandas.concat([data.df, data.df.iloc[[-1]]])
        self.generator._precompute_candidates(self.wanted)
        self.rows = {}  # of columns, all rows that have them
        for values, row in zip(matrix.tolist(), problem.train, strict=True):
            self.rows.setdefault(tuple(values), []).append(row)
        self.robust = self.generator._candidates[self.wanted]

    def explain(self, factual, reach, count, seed, limit):
        if self.robust.empty:
            return [{"status": "GAVE_UP", "detail": "no training row is accepted by all models of ElliCE's ellipsoid"}]

        def permitted(row):
            return row != factual and all(reach[name].permits(value) for name, value in row.items())

        candidates = self.robust.drop_duplicates()
        points = [tuple(values) for values in candidates.to_numpy().tolist()]
        reached = {values: row for values in points if (row := next(filter(permitted, self.rows[values]), None))}
        if not reached:
            return [{"status": "GAVE_UP", "detail": "no robust training row is within the constraints"}]
        self.generator._candidates[self.wanted] = candidates[[values in reached for values in points]]
        (point,) = numpy.asarray(self.problem.matrix([factual]), dtype=float)
        found = self.generator.generate(
            pandas.Series(point, index=self.names), k=count, target_class=self.wanted, requires="robust"
        )
        return [{"row": reached[tuple(values)]} for values in found[self.names].to_numpy().tolist()]


def network_of(layers):
    """The layers as torch's."""
    found = []
    for layer in layers:
        weights = torch.as_tensor(numpy.asarray(layer["weights"]).T.copy(), dtype=torch.float32)
        linear = torch.nn.Linear(weights.shape[1], weights.shape[0])
        with torch.no_grad():
            linear.weight.copy_(weights)
            linear.bias.copy_(torch.as_tensor(numpy.asarray(layer["intercepts"]).copy(), dtype=torch.float32))
        found += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*found[:-1])


far.serve(Ellice)
