"""The notebook around the loop: magics, the notebook's functions and outputs, and how a run is shown.

Only here may IPython and the comm and widget libraries be imported; nothing outside imports from here.
"""
