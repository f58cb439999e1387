"""Axis names, defined once. An axis that three modules or more annotate is one of these words.

batch    texts explained together
tokens   positions of the model's input, special tokens and padding included
units    what receives a score: tokens, words or sentences of one text
scored   what a method returns scores of: units, or tokens for methods that score tokens
masks    keeps of one text
classes  outputs of the model
vocabulary  classes that are tokens
choices  classes of one of the parts of a prediction, such as the start and the end of an answer
places   masks or tagged spans of one text
hidden   features of an embedding
heads, query, key   axes of an attention map
features  the part of the hidden features that one head sees
read     rows of an attention map that the prediction is made from
points   points of a path through embedding space, or through attention maps
texts, parts, samples   numbers per text that a pooled value is made from, and resamples of their means
layers, groups, coefficients  numbers per layer; what is normalised together; trained weights
sources, inputs, outputs  tokens whose part of a state a vector is; the axes of a weight matrix
prefix   tokens that several inputs begin with, and that are computed once
positions  some of a text's tokens
reads    places in packed rows where the model's output is read
targets  classes or outputs whose gradients are computed together
steps    points of a path through word embeddings
pairs    two coalitions, or two texts, that belong together
width, size  features and entries of any kind
rows, entries  anything, and the axis that is normalised
methods, metrics, maps  rows and columns of a table; maps of one text that a metric may choose from

An axis whose size differs between the tensors of one list is written with an underscore before it: "_masks _units".
"""

from jaxtyping import Float
from torch import Tensor

Embeddings = Float[Tensor, "batch tokens hidden"]
Logits = Float[Tensor, "batch classes"]
Attention = Float[Tensor, "batch heads query key"]
HeadStates = Float[Tensor, "batch heads tokens features"]
PathEmbeddings = Float[Tensor, "points tokens hidden"]
Points = Float[Tensor, " points"]
