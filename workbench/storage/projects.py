"""Projects and their folders."""

from __future__ import annotations

from workbench.errors import NotFound, list_choices
from workbench.storage.database import Table, new_id
from workbench.types import APART_TYPES, FAMILY_TYPES, Folder, Project

_APART = {"apart": list(APART_TYPES), "families": list(FAMILY_TYPES)}


class Projects(Table):
    def list(self) -> list[Project]:
        return [Project(**row) for row in self._rows("project_list", _APART | {"key": None})]

    def get(self, key: str) -> Project:
        """Return a project by id or exact title.

        Raises:
            NotFound: There is no such project; the message lists the existing ones.
        """
        rows = self._rows("project_list", _APART | {"key": key})
        if not rows:
            ids = {project.title: project.id for project in self.list()}
            raise NotFound("project", key, f"Valid projects: {list_choices(ids, ids=ids)}.")
        return Project(**next((row for row in rows if row["id"] == key), rows[0]))

    def create(self, title: str, description: str = "", *, id: str | None = None) -> Project:
        """Create a project. Raises Conflict if the title or id is taken."""
        project_id = id or new_id("project")
        self._rows("project_insert", {"id": project_id, "title": title, "description": description})
        return self.get(project_id)

    def update(self, key: str, *, title: str | None = None, description: str | None = None) -> Project:
        """Change the given fields; None leaves a field unchanged.

        Raises:
            NotFound: There is no such project.
            Conflict: The title is taken.
        """
        project = self.get(key)
        self._rows("project_update", {"id": project.id, "title": title, "description": description})
        return self.get(project.id)

    def delete(self, key: str) -> Project:
        project = self.get(key)
        self._rows("project_delete", {"id": project.id})
        return project

    def folders(self, project: str) -> list[Folder]:
        """Return a project's folders by name. Raises NotFound."""
        return [Folder(**row) for row in self._rows("folder_list", _APART | {"project_id": self.get(project).id})]

    def folder(self, project: str, key: str) -> Folder:
        """Return a folder of a project by name or id.

        Raises:
            NotFound: There is no such folder; the message lists the existing ones.
        """
        folders = self.folders(project)
        for folder in sorted(folders, key=lambda folder: folder.id != key):  # ids take precedence over names
            if key in (folder.name, folder.id):
                return folder
        raise NotFound("folder", key, f"Folders of this project: {list_choices(folder.name for folder in folders)}.")

    def create_folder(self, project: str, name: str, **fields: str | None) -> Folder:
        """Create a folder; ``fields`` are description, color and icon_name. Raises Conflict if the name is taken."""
        values = {"description": "", "color": "#6366f1", "icon_name": "folder"} | {
            key: value for key, value in fields.items() if value is not None
        }
        owner = self.get(project)
        self._rows("folder_insert", {"id": new_id("folder"), "project_id": owner.id, "name": name, **values})
        return self.folder(owner.id, name)

    def update_folder(self, project: str, key: str, **fields: str | None) -> Folder:
        """Change name, description, color or icon_name of a folder; None leaves a field unchanged."""
        folder = self.folder(project, key)
        unchanged: dict[str, str | None] = dict.fromkeys(("name", "description", "color", "icon_name"))
        values = unchanged | fields
        self._rows("folder_update", {"id": folder.id, **values})
        return self.folder(folder.project_id, folder.id)

    def delete_folder(self, project: str, key: str) -> Folder:
        """Delete a folder; its sources stay in the project."""
        folder = self.folder(project, key)
        self._rows("folder_delete", {"id": folder.id})
        return folder
