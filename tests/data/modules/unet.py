"""A U-Net of two levels, whose decoder sees what the encoder saw."""
import torch
from torch import nn


def twice(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True),
        nn.Conv2d(outside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU(inplace=True))


class Model(nn.Module):
    def __init__(self, channels, classes, width):
        super().__init__()
        self.down = nn.ModuleList([twice(channels, width), twice(width, 2 * width)])
        self.bottom = twice(2 * width, 4 * width)
        self.up = nn.ModuleList([nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2),
                                 nn.ConvTranspose2d(2 * width, width, 2, stride=2)])
        self.join = nn.ModuleList([twice(4 * width, 2 * width), twice(2 * width, width)])
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image):
        skips, x = [], image
        for block in self.down:
            x = block(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, block in zip(self.up, self.join):
            x = block(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def get_init_inputs():
    return [3, 4, 16]


def get_inputs():
    return [torch.rand(2, 3, 64, 64)]
