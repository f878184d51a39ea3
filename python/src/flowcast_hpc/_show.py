"""Shows report pages in Jupyter or in a browser."""

from __future__ import annotations

import html
import tempfile
import webbrowser
from pathlib import Path
from typing import Any


def show_page(page: str) -> object:
    """Returns a frame with the page for a notebook. Elsewhere it opens the page in a browser.

    Parameters
    ----------
    page : str
        A whole HTML document.

    Returns
    -------
    object
        In a notebook an ``IPython.display.HTML``, else the page's ``pathlib.Path``.
    """
    try:
        from IPython.core.display import HTML
        from IPython.core.getipython import get_ipython
    except ImportError:
        pass
    else:
        if get_ipython() is not None:
            shown: Any = HTML
            frame = '<iframe srcdoc="{}" style="width: 100%; height: 640px; border: 0"></iframe>'
            return shown(frame.format(html.escape(page)))
    with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="flowcast-", delete=False) as file:
        file.write(page)
    path = Path(file.name)
    webbrowser.open(path.as_uri())
    return path
