"""Projects and folders: the places that sources can belong to."""

from __future__ import annotations

from workbench.services.corpus import Corpus
from workbench.services.deletion import Deletion
from workbench.services.naming import check_title
from workbench.types import Folder, Project


class ProjectService:
    """The verbs over projects and their folders."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def list(self) -> list[Project]:
        """Return all projects by title."""
        return self._corpus.projects.list()

    def get(self, key: str) -> Project:
        """Return a project by id or exact title. Raises NotFound listing the projects."""
        return self._corpus.projects.get(key)

    def create(self, title: str, description: str = "", *, id: str | None = None) -> Project:
        """Create a project. Raises InvalidInput or Conflict."""
        return self._corpus.projects.create(check_title(title), description, id=id)

    def update(self, key: str, *, title: str | None = None, description: str | None = None) -> Project:
        """Change the given fields; None leaves one as it is. Raises NotFound or Conflict."""
        return self._corpus.projects.update(key, title=title and check_title(title), description=description)

    def delete(self, key: str) -> Deletion:
        """Delete a project with its folders, sources and their documents; reports what went."""
        project = self.get(key)
        sources = self._corpus.sources.list(project_id=project.id)
        names = [index.name for index in self._corpus.indexes.list()]
        citations = sum(self._corpus.citations.link_count(source_id=source.id) for source in sources)
        for source in sources:
            self._corpus.sources.delete(source.id, names)
        self._corpus.projects.delete(project.id)
        return Deletion(
            "project",
            project.id,
            project.title,
            sources=len(sources),
            documents=sum(source.documents_count for source in sources),
            passages=sum(source.passages_count for source in sources),
            citations=citations,
        )

    def folders(self, project: str) -> list[Folder]:
        """Return a project's folders by name. Raises NotFound."""
        return self._corpus.projects.folders(project)

    def create_folder(
        self,
        project: str,
        name: str,
        description: str = "",
        color: str = "#6366f1",
        icon_name: str = "folder",
    ) -> Folder:
        """Create a folder of a project. Raises NotFound, InvalidInput or Conflict."""
        return self._corpus.projects.create_folder(
            project, check_title(name), description=description, color=color, icon_name=icon_name
        )

    def update_folder(
        self,
        project: str,
        folder: str,
        *,
        name: str | None = None,
        description: str | None = None,
        color: str | None = None,
        icon_name: str | None = None,
    ) -> Folder:
        """Change the given fields of a folder, named by id or name. Raises NotFound or Conflict."""
        return self._corpus.projects.update_folder(
            project, folder, name=name and check_title(name), description=description, color=color, icon_name=icon_name
        )

    def delete_folder(self, project: str, folder: str) -> Folder:
        """Delete a folder; its sources stay in the project. Raises NotFound."""
        return self._corpus.projects.delete_folder(project, folder)
