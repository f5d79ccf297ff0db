"""Prints the values of ``t`` as ParaView reads them: ``pvpython paraview_values.py FILE``."""

import sys

from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIONetCDF import vtkNetCDFCFReader

reader = vtkNetCDFCFReader()
reader.SetFileName(sys.argv[1])
reader.SphericalCoordinatesOff()
reader.ReplaceFillValueWithNanOn()
reader.UpdateInformation()
reader.SetDimensions("(lat, lon)")
for time in reader.GetOutputInformation(0).Get(reader.GetExecutive().TIME_STEPS()):
    reader.UpdateTimeStep(time)
    data = reader.GetOutputDataObject(0)
    values = data.GetPointData().GetArray("t") or data.GetCellData().GetArray("t")
    if values is None:
        sys.exit("no values of t")
    print(*vtk_to_numpy(values).tolist(), sep="\n")
