"""PertCF by the package pertcf: the far side of ``method=pertcf``.

The library sees the features as they are; its casebases hold the training rows by what the model says of them. SHAP
values are computed here as the library would, whose own code reads an older format of theirs. It knows no constraints:
what its point changes against them is put back as it was where the model still says what is wanted, else the point is
handed on as it is. Whole numbers are rounded.
"""

import warnings

import far
import numpy
import pandas
import pertcf
import shap


class PertCf:
    r"""A point between the factual and its nearest row of the wanted class, by steps weighted by SHAP: algorithm 1 of
    [1]_.

    .. math::
        x_j \leftarrow x_j + w_j (t_j - x_j), \quad d(x, t) = \textstyle\sum_j w_j |x_j - t_j| / R_j

    No objective is minimised. :math:`w_j` are the wanted class's mean absolute SHAP values, which add up to 1,
    :math:`R_j` ranges; a category becomes that of t, and counts 1 in d where it differs. t is first the nearest row, by
    d, and a point met before once x is of the wanted class. The search ends where two points of that class are no
    farther apart than ``1 / coef`` of the way to the nearest row, or after ``num_iter`` steps.

    References
    ----------
    .. [1] Bayrak, B., and K. Bach (2023). PertCF: a perturbation-based counterfactual generation approach. *SGAI-AI*.
       doi:10.1007/978-3-031-47994-6_13. pertcf 1.0.0, https://github.com/b-bayrak/PertCF-Explainer
    """

    def __init__(self, problem, settings):
        if "class" not in problem.target or "probability" in problem.target:
            raise far.Refused("PertCF is run for a wanted class only; set 'desired' to a class.")
        self.problem, self.wanted = problem, str(problem.target["class"])
        self.names = [feature["name"] for feature in problem.features]
        self.categories = {
            feature["name"]: feature["categories"] for feature in problem.features if feature["categories"]
        }
        train = pandas.DataFrame(problem.train, columns=self.names)
        says = [str(label) for label in problem.predict(problem.train)]
        adapter = pertcf.adapters._CallableAdapter(
            None, [str(name) for name in problem.classes], self.predict, self.shares
        )
        numpy.random.seed(0)  # noqa: NPY002
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.explainer = pertcf.PertCFExplainer(
                adapter, train, says, list(self.categories), label="label", num_iter=settings["num_iter"],
                coef=settings["coef"], shap_values=self.weights(train, settings["shap_sample_size"]),
            ).fit(verbose=False)  # fmt: skip

    def weights(self, train, size):
        """Mean absolute SHAP values, a row a class, which add up to 1."""
        codes = train.copy()
        for name, levels in self.categories.items():
            codes[name] = [levels.index(value) for value in train[name]]
        codes = codes.astype(float).sample(min(size, len(codes)), random_state=42)
        values = shap.KernelExplainer(self.shares, codes).shap_values(codes, silent=True)
        means = numpy.abs(values).mean(axis=0).T
        sums = means.sum(axis=1, keepdims=True)
        return pandas.DataFrame(
            means / numpy.where(sums > 0, sums, 1.0), [str(name) for name in self.problem.classes], self.names
        )

    def shares(self, codes):
        """Scores, shape (rows, classes), of rows in which a category is its place; of equal rows one is asked about."""
        frame = pandas.DataFrame(codes)
        places = frame.groupby(list(frame), sort=False).ngroup().to_numpy()
        _, first = numpy.unique(places, return_index=True)
        score = numpy.asarray(self.problem.score(codes[first]), dtype=float)[places]
        return numpy.column_stack([1 - score, score]) if score.ndim == 1 else score

    def rows(self, matrix):
        """Rows of the library's values as rows of the problem."""
        found = []
        for values in matrix:
            row = dict(zip(self.names, values, strict=True))
            for feature in self.problem.features:
                if not feature["categories"]:
                    number = float(row[feature["name"]])
                    row[feature["name"]] = round(number) if feature["kind"] == "integer" else number
            found.append(row)
        return found

    def predict(self, matrix):
        return numpy.array([str(label) for label in self.problem.predict(self.rows(matrix))])

    def explain(self, factual, reach, count, seed, limit):
        numpy.random.seed(seed % 2**32)  # noqa: NPY002
        label = str(self.problem.predict([factual])[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.explainer.explain(pandas.Series({**factual, "label": label}), target_class=self.wanted)
        if found is None:
            return [{"status": "GAVE_UP", "detail": "PertCF found no candidate"}]
        (row,) = self.rows([[found[name] for name in self.names]])
        back = {name: value if reach[name].permits(value) else factual[name] for name, value in row.items()}
        return [{"row": back if self.problem.accepts([back])[0] else row}]


far.serve(PertCf)
