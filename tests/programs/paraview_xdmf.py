"""Prints the values of ``p`` as ParaView reads them through XDMF: ``pvpython paraview_xdmf.py FILE 2|3``."""

import sys

from vtkmodules.util.numpy_support import vtk_to_numpy

if sys.argv[2] == "2":
    from vtkmodules.vtkIOXdmf2 import vtkXdmfReader as Reader
else:
    from vtkmodules.vtkIOXdmf3 import vtkXdmf3Reader as Reader


def leaves(data):
    """Yield the data sets below blocks."""
    for number in range(data.GetNumberOfBlocks()) if hasattr(data, "GetNumberOfBlocks") else ():
        yield from leaves(data.GetBlock(number))
    if hasattr(data, "GetPointData"):
        yield data


reader = Reader()
reader.SetFileName(sys.argv[1])
reader.UpdateInformation()
reader.Update()
for leaf in leaves(reader.GetOutputDataObject(0)):
    values = leaf.GetPointData().GetArray("p")
    if values is not None:
        print(*vtk_to_numpy(values).tolist(), sep="\n")
