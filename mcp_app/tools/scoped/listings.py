"""Places to search: the sources of a scope, the folders of a project."""

from __future__ import annotations

from mcp_app.arguments import Argument
from mcp_app.fitting import LONGEST_TITLE, cut
from mcp_app.forms import form
from mcp_app.parts import Items
from mcp_app.tool import Call, Tool
from mcp_app.tools.scoped.family import OFFSET, as_given, family, nothing
from mcp_app.tools.scoped.searches import SCOPES
from workbench.errors import InvalidInput
from workbench.types import Folder, Source
from workbench.types.json import JsonObject


def available_sources(call: Call, scope: str | None, project_id: str, offset: int) -> JsonObject:
    """List the sources of a scope; with a project and no scope that project's and the global ones."""
    if scope == "global" and project_id:
        raise InvalidInput("The scope 'global' cannot have a project; drop project_id, or use scope='project'.")
    project = call.workbench.projects.get(project_id).id if project_id else None
    kind = None if scope in (None, "all") else scope
    sources = call.workbench.sources.list(scope=kind)
    chosen = [source for source in sources if project is None or source.project_id in (None, project)]
    return {
        "success": True,
        "sources": [source_json(source) for source in chosen[offset:]],
        "count": len(chosen),
        "scope_filter": scope,
        "project_filter": project_id or None,
        "error": None,
    }


def list_project_folders(call: Call, project_id: str, offset: int) -> JsonObject:
    """List the folders of a project."""
    project = call.workbench.projects.get(project_id)
    folders = call.workbench.projects.folders(project.id)
    return {
        "success": True,
        "project_id": project.id,
        "project_title": project.title,
        "folders": [folder_json(folder) for folder in folders[offset:]],
        "total": len(folders),
        "error": None,
    }


def source_json(source: Source) -> JsonObject:
    """Return a source with where it stands."""
    answer = source.to_dict()
    return {
        "source_id": source.id,
        "title": cut(source.title, LONGEST_TITLE),
        "url": source.url,
        "source_type": source.source_type,
        "scope": source.scope,
        "project_id": source.project_id,
        "folder_name": source.folder_name,
        "tags": list(source.tags),
        "documents_count": source.documents_count,
        "status": source.status,
        "updated_at": answer["updated_at"],
    }


def folder_json(folder: Folder) -> JsonObject:
    """Return a folder as the specification shows it."""
    return {
        "id": folder.id,
        "name": folder.name,
        "description": cut(folder.description),
        "source_count": folder.source_count,
        "color": folder.color,
        "icon_name": folder.icon_name,
    }


GET_AVAILABLE_SOURCES = Tool(
    name="rag_get_available_sources",
    title="See what can be searched",
    description=(
        "List the sources with their scope, project, folder and tags.\n"
        "Use it before a targeted search; to see a source's documents use rag_list_pages_for_source.\n"
        'Example: rag_get_available_sources(scope="project", project_id="proj_123")'
    ),
    arguments=(
        Argument("scope", "string", "Only global or only project sources; by default all.", choices=SCOPES),
        Argument(
            "project_id", "string", "Only this project's sources (and, unless scope is project, the global ones).", ""
        ),
        OFFSET,
    ),
    run=available_sources,
    family=family(
        sources=nothing, count=lambda given: 0, scope_filter=as_given("scope"), project_filter=as_given("project_id")
    ),
    parts=Items("sources", count="", total="count"),
    advice="What there is: rag_get_available_sources; a project's folders: rag_list_project_folders.",
    output=form(sources="array", count="integer"),
)

LIST_PROJECT_FOLDERS = Tool(
    name="rag_list_project_folders",
    title="List a project's folders",
    description=(
        "List a project's folders with what each is for and how many sources it has.\n"
        "Use it when you start on a project, before rag_search_project_knowledge with folder_name; for the sources "
        "use rag_get_available_sources.\n"
        'Example: rag_list_project_folders(project_id="proj_123")'
    ),
    arguments=(Argument("project_id", "string", "The project: its id or exact title.", required=True), OFFSET),
    run=list_project_folders,
    family=family(
        folders=nothing, project_id=as_given("project_id"), project_title=lambda given: None, total=lambda given: 0
    ),
    parts=Items("folders", count="", total="total"),
    output=form(folders="array", total="integer"),
)
