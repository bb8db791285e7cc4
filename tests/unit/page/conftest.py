"""A browser, and helpers to look at pages in it."""

from tests.support.browser_fixtures import page as page
from tests.support.browser_fixtures import pictures as pictures
from tests.support.browser_fixtures import window as window
