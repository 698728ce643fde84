"""find_projects, create_project and create_folder: the places that knowledge is kept in."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import Items
from mcp_app.tool import Call, Tool
from mcp_app.tools.reading.family import FAMILY, LIMIT, SKIP
from mcp_app.tools.scoped.listings import folder_json
from workbench.types import Project
from workbench.types.json import JsonObject


def find_projects(call: Call, query: str, limit: int, offset: int) -> JsonObject:
    """List the projects whose title or description holds the query's words."""
    words = query.casefold().split()
    projects = [project for project in call.workbench.projects.list() if _holds(project, words)]
    listed = [project_json(project) for project in projects[offset : offset + limit]]
    return {"success": True, "projects": listed, "count": len(listed), "total": len(projects)}


def create_project(call: Call, title: str, description: str) -> JsonObject:
    """Make a project."""
    project = call.workbench.projects.create(title, description)
    return {"success": True, "project": project_json(project), "message": "Project created successfully"}


def create_folder(call: Call, project_id: str, name: str, description: str) -> JsonObject:
    """Make a folder in a project."""
    folder = call.workbench.projects.create_folder(project_id, name, description)
    return {"success": True, "folder": folder_json(folder), "message": "Folder created successfully"}


def project_json(project: Project) -> JsonObject:
    """Return a project as the tools show it."""
    return {
        "project_id": project.id,
        "title": cut(project.title, LONGEST_TITLE),
        "description": cut(project.description),
        "source_count": project.source_count,
    }


def _holds(project: Project, words: list[str]) -> bool:
    text = f"{project.title} {project.description}".casefold()
    return all(word in text for word in words)


FIND_PROJECTS = Tool(
    name="find_projects",
    title="Find projects",
    description=(
        "List projects by the words of their title and description.\n"
        "Use it to get a project_id; for a project's folders use rag_list_project_folders.\n"
        'Example: find_projects(query="shop")'
    ),
    arguments=(Argument("query", "string", "Words; empty lists all.", ""), LIMIT, SKIP),
    run=find_projects,
    family=FAMILY,
    parts=Items("projects", total="total"),
    advice="Which projects there are: find_projects; new ones: create_project, create_folder.",
    reading_advice="Which projects there are: find_projects.",
    output=form(projects="array", total="integer"),
)

CREATE_PROJECT = Tool(
    name="create_project",
    title="Create a project",
    description=(
        "Make a project that sources can belong to.\n"
        "Use it when find_projects shows none that fits.\n"
        'Example: create_project(title="Shop")'
    ),
    arguments=(
        Argument("title", "string", "Its name.", required=True),
        Argument("description", "string", "What it is for.", ""),
    ),
    run=create_project,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    output=form(project="object"),
)

CREATE_FOLDER = Tool(
    name="create_folder",
    title="Create a folder",
    description=(
        "Make a folder in a project.\n"
        "Use it to keep a project's sources apart; then crawl_website or manage_source(action='create') with "
        "folder_name.\n"
        'Example: create_folder(project_id="proj_123", name="API")'
    ),
    arguments=(
        Argument("project_id", "string", "The project: its id or exact title.", required=True),
        Argument("name", "string", "The folder's name.", required=True),
        Argument("description", "string", "What it is for.", ""),
    ),
    run=create_folder,
    family=FAMILY,
    read_only=False,
    idempotent=False,
    output=form(folder="object"),
)
