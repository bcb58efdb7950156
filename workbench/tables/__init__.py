"""The tables: fixes, places, timelines, notifications. Names, types, order and checks, once.

=============  =====================================================================================
fixes          ``mobile, t``, then ``x, y`` (and ``z``) in metres or ``lon, lat`` in degrees; attributes; ``op``
places         ``place``, the same coordinates or ``geometry``; attributes; ``t`` and ``op`` where things change
other tables   ``id`` (or the table's own name), ``t``, coordinates, attributes: as far as they are needed
timelines      ``publication, subscription, tau, pi, ended``, in this order of rows: tau, publication, subscription
notifications  ``t, kind, publication, subscription``, ordered by t, unmatch before match, publication, subscription
messages       of TIP's brokers and services, declared in `workbench.tip.messages`
=============  =====================================================================================

``op`` is ``add``, ``update`` or ``remove``; without one, the first row of an id adds it and later ones update it. A
null cell means "unchanged". Rows come in any order. Of one (id, t), identical rows collapse, rows that complete each
other merge, remove and add together are an update, and rows in conflict are all set aside and counted.
"""

from workbench.tables.changing import changes, needs_position
from workbench.tables.declared import COORDINATES, KEYS, NOTIFICATIONS, OPERATIONS, TIMELINES
from workbench.tables.frames import notifications_frame, timelines_frame, told_of_their_end, with_types_of
from workbench.tables.inputs import Inputs, agreed, ends_of, inputs
from workbench.tables.instants import check_zone, ticks_of
from workbench.tables.loading import columns_of, is_geoparquet, load, of_spark, parquet_files
from workbench.tables.repeated import merged_table, one_row_per_instant
from workbench.tables.rows import Rows, read
from workbench.tables.shapes import geometry_of, in_metric, mended, parsed_geometry, shapes_of
from workbench.tables.texts import in_pieces, is_text

__all__ = [
    "COORDINATES", "KEYS", "NOTIFICATIONS", "OPERATIONS", "TIMELINES",
    "columns_of", "is_geoparquet", "load", "of_spark", "parquet_files", "in_pieces", "is_text",
    "Rows", "merged_table", "one_row_per_instant", "read", "check_zone", "ticks_of",
    "geometry_of", "in_metric", "mended", "parsed_geometry", "shapes_of",
    "Inputs", "agreed", "ends_of", "inputs", "changes", "needs_position",
    "notifications_frame", "timelines_frame", "told_of_their_end", "with_types_of",
]  # fmt: skip
