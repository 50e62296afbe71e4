#!/usr/bin/env python3
"""Write the task files of the suites that are not KernelBench.

    tasks/others.py OUTDIR

crfm   five problems that Stanford CRFM published kernels for (May 2025)
hgemm  half-precision products C[M,N] = A[M,K] B[K,N] with fp32 accumulation, as
       in CUDA-L2; B is given row-major (B) and transposed (Bt), a kernel reads
       whichever it likes"""

import sys

sys.dont_write_bytecode = True
from write import tensor, write

CRFM = "Stanford CRFM, Surprisingly Fast AI-Generated Kernels"
NORMAL = "normal(0,1)"


def conv_tensors():
    """An 11x11 convolution, 3 to 96 channels: the first layer of AlexNet."""
    return ([tensor("x", [100, 3, 224, 224], NORMAL)],
            [tensor("weight", [96, 3, 11, 11], "fan_in(363)"), tensor("bias", [96], "fan_in(363)")],
            "t1[100,96,55,55] = conv2d(x, weight=weight, bias=bias; stride=4, padding=2, dilation=1, groups=1)")


def crfm(folder):
    write(folder, "crfm", "crfm_matmul", "Matmul 4096", CRFM,
          [tensor("A", [4096, 4096], NORMAL), tensor("B", [4096, 4096], NORMAL)], [],
          ["t1[4096,4096] = matmul(A, B)"], ["t1"])
    write(folder, "crfm", "crfm_softmax", "Softmax 4096 x 65536", CRFM,
          [tensor("x", [4096, 65536], NORMAL)], [], ["t1[4096,65536] = softmax(x; dim=-1)"], ["t1"])
    write(folder, "crfm", "crfm_layernorm", "LayerNorm over 64 x 256 x 256", CRFM,
          [tensor("x", [16, 64, 256, 256], NORMAL)],
          [tensor("weight", [64, 256, 256], "constant(1)"), tensor("bias", [64, 256, 256], "constant(0)")],
          ["t1[16,64,256,256] = layer_norm(x, weight=weight, bias=bias; shape=[64,256,256], eps=1e-05)"],
          ["t1"])
    inputs, parameters, conv = conv_tensors()
    write(folder, "crfm", "crfm_conv2d", "Conv2d 11 x 11, stride 4", CRFM, inputs, parameters, [conv], ["t1"])
    write(folder, "crfm", "crfm_conv2d_relu_maxpool", "Conv2d + ReLU + MaxPool", CRFM, inputs, parameters,
          [conv, "t2[100,96,55,55] = relu(t1)",
           "t3[100,96,27,27] = max_pool2d(t2; kernel_size=3, stride=2, padding=0, dilation=1, ceil_mode=false)"],
          ["t3"])


def hgemm(folder, m, n, k):
    write(folder, "hgemm", "hgemm_%d_%d_%d" % (m, n, k), "HGEMM %d x %d x %d" % (m, n, k), "CUDA-L2",
          [tensor("A", [m, k], NORMAL, "f16"), tensor("B", [k, n], NORMAL, "f16"),
           tensor("Bt", [n, k], "transposed(B)", "f16")], [],
          ["t1[%d,%d] = matmul(A, B)" % (m, n)], ["t1"],
          ["accumulation is in fp32", "Bt is B transposed: a kernel may read B or Bt"])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: others.py OUTDIR")
    crfm(sys.argv[1])
    for m, n, k in ((64, 64, 64), (128, 4096, 4096), (4096, 4096, 4096)):
        hgemm(sys.argv[1], m, n, k)


if __name__ == "__main__":
    main()
