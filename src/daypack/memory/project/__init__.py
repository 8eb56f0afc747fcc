"""One memory per repository: which project a folder belongs to, and which memory is the project's."""

from daypack.memory.project.memory import project_folder, project_memory
from daypack.memory.project.repository import Project, find_project

__all__ = ["Project", "find_project", "project_folder", "project_memory"]
