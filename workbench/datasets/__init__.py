"""Data sets: public formats in, one layout on disk, nothing lost on the way.

=================  =============================================================================================
`ingest`           a file, folder, zip, tar or table becomes sorted, bucketed Parquet with a manifest
`load`             the same for small data, as a pandas table
`open_fixes`       what was ingested: manifest, bucket files, what was set aside
`describe`         a table and a map of what a data set holds; `movement`: how its mobiles move
`trips`, `stops`   and `resample`, `clip`: fixes to fixes, and `prepare` for whole data sets
`excerpt`          a few mobiles and hours of a data set
`City`             a synthetic city, with the truth beside what a receiver saw
=================  =============================================================================================
"""

from workbench.datasets.city import City
from workbench.datasets.describing import Description, describe
from workbench.datasets.excerpts import excerpt
from workbench.datasets.formats import FORMATS
from workbench.datasets.frames import to_geodataframe, to_trajectories, write_geoparquet
from workbench.datasets.ingesting import ingest, load
from workbench.datasets.layout import Fixes, bucket_of, is_ingested, open_fixes
from workbench.datasets.movement import Movement, movement
from workbench.datasets.places import read_places, write_places
from workbench.datasets.preparing import clip, prepare, resample, stop_table, stops, trips
from workbench.datasets.public import find_data
from workbench.datasets.quality import QualityWarning, Report, report_of

__all__ = [
    "FORMATS",
    "City",
    "Description",
    "Fixes",
    "Movement",
    "QualityWarning",
    "Report",
    "bucket_of",
    "clip",
    "describe",
    "excerpt",
    "find_data",
    "ingest",
    "is_ingested",
    "load",
    "movement",
    "open_fixes",
    "prepare",
    "read_places",
    "report_of",
    "resample",
    "stop_table",
    "stops",
    "to_geodataframe",
    "to_trajectories",
    "trips",
    "write_geoparquet",
    "write_places",
]
