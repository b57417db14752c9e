"""Metrics, one module a theme; each is imported by its dotted path (such as ``metrics.proximity.l1``) when asked for.

All take coherent answers, values of their features, but ``metrics.actionability.incoherent``, which counts the others.

Docstrings name whose definition a metric is:

- Black, E., Z. Wang, M. Fredrikson, and A. Datta (2022). Consistent counterfactuals for deep models. *ICLR*.
- Breunig, M. M., H.-P. Kriegel, R. T. Ng, and J. Sander (2000). LOF: identifying density-based local outliers.
  *SIGMOD*.
- Dandl, S., C. Molnar, M. Binder, and B. Bischl (2020). Multi-objective counterfactual explanations. *PPSN XVI*.
- Gower, J. C. (1971). A general coefficient of similarity and some of its properties. *Biometrics* 27(4).
- Jiang, J., F. Leofante, A. Rago, and F. Toni (2023). Formalising the robustness of counterfactual explanations for
  neural networks. *AAAI 37*.
- Jiang, J., J. Lan, F. Leofante, A. Rago, and F. Toni (2023). Provably robust and plausible counterfactual
  explanations for neural networks via robust optimisation. *ACML*.
- Maragno, D., J. Kurtz, T. E. Röber, R. Goedhart, Ş. İ. Birbil, and D. den Hertog (2024). Finding regions of
  counterfactual explanations via robust optimization. *INFORMS Journal on Computing* 36(5).
- Maragno, D., T. E. Röber, and I. Birbil (2022). Counterfactual explanations using optimization with constraint
  learning. *OPT 2022: Optimization for Machine Learning*.
- Mothilal, R. K., A. Sharma, and C. Tan (2020). Explaining machine learning classifiers through diverse counterfactual
  explanations. FAT* 2020. doi:10.1145/3351095.3372850.
- Pawelczyk, M., S. Bielawski, J. van den Heuvel, T. Richter, and G. Kasneci (2021). CARLA: a Python library to
  benchmark algorithmic recourse and counterfactual explanation algorithms. *NeurIPS Datasets and Benchmarks*.
- Pawelczyk, M., T. Datta, J. van den Heuvel, G. Kasneci, and H. Lakkaraju (2023). Probabilistically robust recourse:
  navigating the trade-offs between costs and robustness in algorithmic recourse. *ICLR*.
- Shekhar, S., A. Salim, A. Bansode, V. Jinturkar, and A. Nayak (2023). A PSO based method to generate actionable
  counterfactuals for high dimensional data. arXiv:2311.12825.
- Upadhyay, S., S. Joshi, and H. Lakkaraju (2021). Towards robust and reliable algorithmic recourse. *NeurIPS*.
"""
