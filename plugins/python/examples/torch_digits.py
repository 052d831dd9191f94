#!/usr/bin/env python3
"""A perceptron on digits with PyTorch: a trainer for models of
`builtin: {architecture: mlp, layers: [64, 32, 10]}`, of any depth.

Config: learningRate (0.01), localEpochs (1), batchSize (32), momentum (0), featureScale (1).
"""

import numpy as np
import torch
from torch import nn

import fl_trainer


class Perceptron(nn.Module):
    """Its state_dict has the names of the built-in mlp: layers.N.weight, layers.N.bias."""

    def __init__(self, widths: list) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def make_network(model: fl_trainer.Model) -> Perceptron:
    weights = [model[f"layers.{n}.weight"] for n in range(len(model) // 2)]
    network = Perceptron([weights[0].shape[1]] + [weight.shape[0] for weight in weights])
    network.load_state_dict({name: torch.from_numpy(array) for name, array in model.items()})
    return network


def load(task: fl_trainer.Task) -> tuple:
    features, labels = fl_trainer.read_csv(task.dataset)
    scale = np.float32(task.config.get("featureScale", 1))
    return torch.from_numpy(features * scale), torch.from_numpy(labels)


def train(model: fl_trainer.Model, task: fl_trainer.Task) -> fl_trainer.TrainResult:
    torch.manual_seed(task.seed)
    features, labels = load(task)
    network = make_network(model)
    start = [parameter.detach().clone() for parameter in network.parameters()]
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=task.config.get("learningRate", 0.01),
        momentum=task.config.get("momentum", 0),
    )
    steps, total = 0, 0.0
    for _ in range(task.config.get("localEpochs", 1)):
        total = 0.0
        for rows in torch.randperm(len(labels)).split(task.config.get("batchSize", 32)):
            loss = nn.functional.cross_entropy(network(features[rows]), labels[rows])
            total += loss.item() * len(rows)
            if task.mu:  # FedProx
                for parameter, origin in zip(network.parameters(), start):
                    loss = loss + task.mu / 2 * (parameter - origin).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    trained = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    metrics = {"trainLoss": total / len(labels)} if len(labels) else {}
    return fl_trainer.TrainResult(trained, len(labels), metrics, steps)


def evaluate(model: fl_trainer.Model, task: fl_trainer.Task) -> tuple:
    features, labels = load(task)
    with torch.no_grad():
        outputs = make_network(model)(features)
        loss = nn.functional.cross_entropy(outputs, labels).item()
        accuracy = (outputs.argmax(1) == labels).float().mean().item()
    return len(labels), {"accuracy": accuracy, "loss": loss}


if __name__ == "__main__":
    fl_trainer.run(train=train, evaluate=evaluate)
