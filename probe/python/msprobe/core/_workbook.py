# SPDX-License-Identifier: MIT
"""Writes one table as an .xlsx workbook. The program's own writer lies in the C of compare, which a training
does not load."""
import math
import zipfile
from xml.sax.saxutils import escape

_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_PARTS = {
    "[Content_Types].xml":
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}worksheet+xml"/></Types>',
    "_rels/.rels":
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml":
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels":
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def _cell(value):
    if value is None:
        return "<c/>"
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    if is_number:
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(str(value))}</t></is></c>'


def write_workbook(path, rows):
    """Writes rows of numbers, texts and None, which is an empty cell."""
    lines = "".join("<row>" + "".join(map(_cell, row)) + "</row>" for row in rows)
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in _PARTS.items():
            file.writestr(name, head + text)
        file.writestr("xl/worksheets/sheet1.xml",
                      f'{head}<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>')
