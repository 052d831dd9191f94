#!/usr/bin/env python3
"""Softmax regression on digits with scikit-learn: a trainer for models of
`builtin: {architecture: softmax, layers: [64, 10]}`.

Config: learningRate (0.01), localEpochs (1), featureScale (1), l2 (0.0001).
"""

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

import fl_trainer

WEIGHT, BIAS = "layers.0.weight", "layers.0.bias"


def make_classifier(model: fl_trainer.Model, task: fl_trainer.Task) -> SGDClassifier:
    """A classifier with the global weights, that goes on from there."""
    classes, features = model[WEIGHT].shape
    classifier = SGDClassifier(
        loss="log_loss",
        learning_rate="constant",
        eta0=task.config.get("learningRate", 0.01),
        alpha=task.config.get("l2", 0.0001),
        random_state=task.seed,
    )
    # scikit-learn makes its attributes on the first fit; a client may lack some of the classes.
    classifier.partial_fit(
        np.zeros((1, features), np.float64), np.zeros(1, np.int64), classes=np.arange(classes)
    )
    classifier.coef_ = model[WEIGHT].astype(np.float64)
    classifier.intercept_ = model[BIAS].astype(np.float64)
    return classifier


def load(task: fl_trainer.Task) -> tuple:
    features, labels = fl_trainer.read_csv(task.dataset)
    scaled = features.astype(np.float64) * task.config.get("featureScale", 1)
    return scaled, labels


def train(model: fl_trainer.Model, task: fl_trainer.Task) -> fl_trainer.TrainResult:
    features, labels = load(task)
    classifier = make_classifier(model, task)
    order = np.random.default_rng(task.seed)
    epochs = task.config.get("localEpochs", 1)
    for _ in range(epochs):
        rows = order.permutation(len(labels))
        classifier.partial_fit(features[rows], labels[rows])
    trained = {
        WEIGHT: classifier.coef_.astype(np.float32),
        BIAS: classifier.intercept_.astype(np.float32),
    }
    accuracy = float(classifier.score(features, labels))
    return fl_trainer.TrainResult(
        trained, len(labels), {"trainAccuracy": accuracy}, epochs * len(labels)
    )


def evaluate(model: fl_trainer.Model, task: fl_trainer.Task) -> tuple:
    features, labels = load(task)
    classifier = make_classifier(model, task)
    chances = classifier.predict_proba(features)
    loss = log_loss(labels, chances, labels=classifier.classes_)
    return len(labels), {"accuracy": float(classifier.score(features, labels)), "loss": loss}


if __name__ == "__main__":
    fl_trainer.run(train=train, evaluate=evaluate)
