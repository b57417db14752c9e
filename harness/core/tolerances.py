"""Tolerances: how far apart two numbers may be that count as equal, with unit and reason, for harness and methods.

Equal values that mean different things have different names. Kernels have these compiled in: who changes one empties
numba's cache.
"""

from __future__ import annotations

# --- rounding of sums: relative to the terms ------------------------------------------------------------------------
SUM_ROUNDING = 1e-12  # of a sum: far more than its last digits, and less than any margin that counts
LOG_ODDS_DIGITS = 1e-14  # of log odds that are read off a probability
COMPOSITE_TIE = 1e-13  # of the greatest sum: above its rounding, below what fitted models decide themselves
MARGIN_PROVEN = 1e-11  # a bound on a margin above this, relative to 1 + its terms, proves that it is positive
READING = 1e-12  # relative: pandas reads a number of a CSV file this exactly
NO_DIVISOR = 1e-12  # in units of the divisor: keeps a quotient finite, and changes no other
SMALLEST_NUMBER = 1e-300  # least size of a number whose spacing is asked for: 0 has none that helps

# --- scores ---------------------------------------------------------------------------------------------------------
SCORE_TIE = 1e-9  # scores this near, relative to their terms, are equal, or decided by the fitted model itself
SCORE_SOLVED = 1e-6  # units of the score: what the tolerances of a solver's phases may be off
SCORE_INSET = 1e-8  # units of the score: by which points are tried within the target, above ``SCORE_TIE``
MARGIN = 1e-6  # units of the score, or of an input: the least kept from a threshold, above the solver's tolerance
MARGIN_SHARE = 1e-6  # share of a margin that is left to rounding
OUTPUT_PLACE = 1e-6  # of the spacing of a model's outputs: rounding of one of them
PROBABILITY_TIE = 1e-4  # probabilities of one sum by different functions of float32
PROBABILITY_INSET = 1e-6  # that a probability keeps from 0.5, on the side of the predicted class

# --- coordinates: scaled units, but where said otherwise ------------------------------------------------------------
COORDINATE_TIE = 1e-9  # values this near are the same: rounding of one encode / decode, nothing else
COORDINATE_DIGITS = 1e-11  # listed coordinates this near are one: they were computed alike
COORDINATE_SOLVED = 1e-7  # moves and intervals this short are none: programs give no better
DECODING = 1e-9  # of a feature's range, or of what a relation adds up: what decoding to floats may move an end
LIMIT_MET = 1e-6  # beyond a limit or a box: what decoding and a solver's tolerance may take
HULL_NORMAL = 1e-9  # a component of a normal of length 1 that is less carries nothing
HULL_INSIDE = 5e-7  # a point this near to a hull is in it; above the solver's tolerance
TANGENT_ROOM = 2e-8  # beyond a tangent, for the tolerance of programs
STEP_WIDTH = 1e-10  # between the halves of a step: one over less is taken at once
WALL = 5e-10  # of the radius: a point this near to a wall's end is at it; half of what a line may be off
WHOLE_NUMBER = 1e-9  # in units of the number: one this near to a whole number is that number
FILE_TIE = 1e-6  # values this near are the same: files hold rounded ones
INSET_OF_RANGE = 1e-12  # of its range: what a number keeps away from a threshold for rounding
INSET_OF_SIZE = 8e-15  # of its size: the same, where a program sums it
INSET_OF_CELL = 2e-15  # of its size and reach: the same, where cells sum it

# --- costs, and values that are compared: relative to max(1, value) where it may be great ---------------------------
COST_TIE = 1e-9  # costs this near are equal: rounding of their sums
COST_DIGITS = 1e-12  # costs this near to the best are no better: the sums are short
CARD_COST_TIE = 1e-10  # costs of points of scorecards this near are equal
OPTIMALITY_GAP = 1e-6  # a gap between value and bound this small is none
BALL_GAP = 4e-7  # the same within a robust search, which leaves the rest of ``OPTIMALITY_GAP`` to rounding
SMALL_SQUARE = 1e-6  # squares below it are proven to an absolute gap
CLAIM = 1e-6  # a cost this much above its claim, or below its bound, is not as claimed
VALUE_TIE = 1e-6  # values of metrics this near are equal
RANK_DIGITS = 9  # decimals of mean ranks: means of the same ranks differ in their last digits
WHOLE_BOUND = 1e-6  # of a bound on a whole number, before it is rounded: the solver's tolerance
NO_DISTANCE = 1e-12  # distances below are as good as none, where charts divide by them

# --- feasibility of solvers: units of a scaled row or column --------------------------------------------------------
FEASIBILITY = 1e-7  # of rows, bounds and integrality; with 1e-9 for integrality HiGHS 1.12 gave a wrong optimum
SHARP_FEASIBILITY = 1e-9  # under squares, where what a row is missed by counts more than their own tolerance
LINEAR_WHOLE = 1e-6  # a column of a relaxation this near to a whole number is that number
ROW_MISSED = 1e-9  # by which our own simplexes and hulls may miss a row
ROW_TIGHT = 1e-6  # slack up to which a row is added at the start of a node
BUDGET_ROOM = 1e-7  # relative, beyond a node's budget: rounding makes no program empty
BUDGET_CUTOFF = 1e-6  # of a budget, relative and absolute, that a program is given more; and the least that scales one
PIVOT = 1e-9  # smallest pivot
SINGULAR = 1e-11  # a smaller pivot makes a square matrix singular
REDUCED_COST = 1e-10  # reduced costs this near to 0 are 0
COLUMN_WEIGHT = 1e-7  # a column of weight above 1 by less is not violated
RAY_OF_PROGRAM = 1e-9  # by how much multipliers of at most 1 have to contradict rows and bounds, to exclude one another
RAY_OF_SIMPLEX = 1e-7  # the same of our simplex, which is less exact
RESIDUAL_BLUR = 1e-7  # up to which the kinks of a card's residuals are moved, so that few coincide
FLAT = 1e-9  # a slope this small, of a column without an end, is rounding
BOUND_ROUNDING = 1e-9  # relative to 1 + its terms: what summing may raise a bound by
BOUND_SOLVED = 1e-6  # relative to 1 + its size: what a linear program's tolerances may raise a bound by
SHARE_SOLVED = 1e-6  # a share by a program that exceeds another by less does not
SQUARE_MISSED = 1e-9  # a square this much above its column needs another tangent
CBC_GAP = 1e-4  # relative, at which OR-Tools has CBC stop

# --- progress of searches -------------------------------------------------------------------------------------------
LITTLE_PROGRESS = 1e-4  # relative: after steps that gain less, more of their kind would not help
MULTIPLIER_GAIN = 1e-13  # relative, of a sweep over the multipliers of a ball, which ends with less
MULTIPLIERS_GAIN = 1e-14  # relative, of a round over the multipliers of a network's rows, which ends with less
MULTIPLIER_WIDTH = 1e-8  # relative width at which the bisection of a multiplier ends
NO_DUAL = 1e-12  # a dual below which a clause raises no bound
NO_LENGTH = 1e-18  # of a squared direction: shorter ones lead nowhere
BRANCHING_GAIN = 1e-9  # the least gain in a product of gains, in units of the score or cost, so that none is 0
PSEUDO_GAIN = 1e-6  # the same of gains by programs, which are less exact
LINE_ERROR = 1e-6  # of the greatest error of a line, below which one is none

# --- robustness and regions, which the checker proves ---------------------------------------------------------------
RADIUS = 1e-6  # relative: how exactly a certified radius is known
LEAST_RADIUS = 1e-6  # scaled units: of a smaller region rounding would be too large a share
RADIUS_ROUNDING = 1e-9  # scaled units: what rounding of the last bits of x may take from a radius
RADII_BEYOND = (2e-9, 1.5e-9, 1e-9)  # relative, beyond rho: tried in turn, above ``RADIUS_ROUNDING``
NORM_ROUNDING = 1e-9  # relative excess of a norm that needs no further plane
NORM_SOLVED = 1e-6  # the same where a program with the solver's tolerances adds the planes
UNIT_EXACT = 1e-10  # a relaxed unit of a network this near to its true value is exact

# Of models of other libraries, and of what a user writes.
LIGHTGBM_ZERO = 1e-35  # in float32: LightGBM takes all numbers within it of 0 for 0
COEFFICIENTS = (1e-100, 1e100)  # in size, of what a relation multiplies features with
