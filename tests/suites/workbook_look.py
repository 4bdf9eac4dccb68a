# SPDX-License-Identifier: MIT
"""How two workbooks differ to those who open them: sheets, how large they are, widths, filters, and of
each cell what kind of value it is and how it is shown; the values are for parity.py.  Ours has a
header that stays in view and colours by verdict, which the official one has not."""

STATISTICS = {side + ' ' + word for side in ('NPU', 'Bench')
              for word in ('max', 'min', 'mean', 'l2norm')}
# What ours says otherwise on purpose may be of another kind; parity.py knows where.
REPAIRED = {'Err_message', 'MaxRelativeErr', 'Result'}


def widths(sheet):
    return {k: round(d.width, 2) for k, d in sheet.column_dimensions.items() if d.customWidth}


def kind_of(cell, column):
    """Empty text is nothing, and a statistic that is a truth value is text."""
    if cell.value is None:
        return None
    return 's' if cell.data_type == 'b' and column in STATISTICS else cell.data_type


def cell_look(cell, column):
    a = cell.alignment
    return {'kind': kind_of(cell, column), 'format': cell.number_format,
            'alignment': (a.horizontal, a.vertical, bool(a.wrap_text)) if cell.row > 1 else None}


def cell_difference(cell, twin, column):
    look, have = cell_look(cell, column), cell_look(twin, column)
    if column in REPAIRED and cell.value != twin.value:
        return ''
    return next((f'{cell.coordinate}, {key}: expected {look[key]!r}, got {have[key]!r}'
                 for key in look if look[key] != have[key]), '')


def sheet_difference(a, b):
    for word, x, y in (('filter', a.auto_filter.ref, b.auto_filter.ref),
                       ('merged cells', str(a.merged_cells.ranges), str(b.merged_cells.ranges)),
                       ('size', a.dimensions, b.dimensions), ('widths', widths(a), widths(b))):
        if x != y:
            return f'{word}: expected {x!r}, got {y!r}'
    columns = [cell.value for cell in a[1]]
    return next((d for row, other in zip(a.iter_rows(), b.iter_rows())
                 for cells in zip(row, other, columns) if (d := cell_difference(*cells))), '')


def difference(want, have):
    import openpyxl  # the official tool needs it too; without that one nobody gets here
    a, b = openpyxl.load_workbook(want), openpyxl.load_workbook(have)
    if a.sheetnames != b.sheetnames:
        return f'sheets: expected {a.sheetnames}, got {b.sheetnames}'
    return next((x.title + ', ' + d for x, y in zip(a, b) if (d := sheet_difference(x, y))), '')
