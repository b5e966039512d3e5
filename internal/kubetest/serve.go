package kubetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

const antreaGroup = "crd.antrea.io"

// serve answers one request.
func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	refuse := a.refuse
	a.mu.Unlock()
	if refuse != 0 {
		fail(w, refuse, "InternalError", "made to fail")
		return
	}
	group, version, rest := split(r.URL.Path)
	switch {
	case len(rest) == 0:
		a.discover(w, group, version)
	case len(rest) == 1 && r.Method == http.MethodPost:
		a.create(w, r, ref{group: group, plural: rest[0]})
	case len(rest) == 1:
		a.collection(w, r, ref{group: group, plural: rest[0]}, version)
	case len(rest) == 3 && rest[0] == "namespaces" && r.Method == http.MethodPost:
		a.create(w, r, ref{group: group, plural: rest[2], namespace: rest[1]})
	case len(rest) >= 4 && rest[0] == "namespaces":
		a.one(w, r, ref{group: group, plural: rest[2], namespace: rest[1], name: rest[3]}, rest[4:])
	case len(rest) >= 2:
		a.one(w, r, ref{group: group, plural: rest[0], name: rest[1]}, rest[2:])
	default:
		fail(w, http.StatusNotFound, "NotFound", "no such path")
	}
}

// split splits a path into group, version and the rest.
func split(path string) (group, version string, rest []string) {
	words := strings.Split(strings.Trim(path, "/"), "/")
	if words[0] == "api" {
		words = append([]string{"apis", ""}, words[1:]...)
	}
	words = append(words, "", "")
	group, version = words[1], words[2]
	for _, word := range words[min(3, len(words)):] {
		if word != "" {
			rest = append(rest, word)
		}
	}
	return group, version, rest
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, reason, message string) {
	answer(w, status, statusObject(status, reason, message))
}

func statusObject(status int, reason, message string) object {
	return object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason, "message": message}
}

// discover lists the resources of a group.
func (a *API) discover(w http.ResponseWriter, group, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests["discover"]++
	served := a.served(group)
	switch {
	case len(served) == 0:
		fail(w, http.StatusNotFound, "NotFound", "no such group")
	case version == "":
		var versions []object
		for v := range served {
			versions = append(versions, object{"groupVersion": group + "/" + v, "version": v})
		}
		answer(w, http.StatusOK, object{"kind": "APIGroup", "name": group, "versions": versions})
	default:
		answer(w, http.StatusOK, object{"kind": "APIResourceList", "groupVersion": group + "/" + version, "resources": served[version]})
	}
}

// served lists the resources of a group, by version.
func (a *API) served(group string) map[string][]object {
	served := map[string][]object{}
	for plural, yes := range a.kinds {
		if v := antreaVersion(plural); yes && group == antreaGroup {
			served[v] = append(served[v], object{"name": plural})
		}
	}
	for _, resource := range a.others {
		if words := strings.Split(resource, "/"); words[0] == group {
			served[words[1]] = append(served[words[1]], object{"name": words[2]})
		}
	}
	return served
}

func (a *API) get(w http.ResponseWriter, r ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.objects[r]; o != nil {
		answer(w, http.StatusOK, o)
		return
	}
	fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", r.plural, r.name))
}

// one answers a request for one object or a subresource. PUT and PATCH replace the object if it
// has the client's uid and resourceVersion.
func (a *API) one(w http.ResponseWriter, r *http.Request, of ref, part []string) {
	if r.Method == http.MethodGet {
		a.count("get " + of.plural)
		a.get(w, of)
		return
	}
	verb := strings.ToLower(strings.Replace(r.Method, http.MethodPut, "UPDATE", 1))
	request := strings.Join(append([]string{verb + " " + of.plural}, part...), "/")
	a.count(request)
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	a.mu.Lock()
	old := a.objects[of]
	known := of.group != antreaGroup || a.kinds[of.plural]
	a.mu.Unlock()
	if old == nil || !known {
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", of.plural, of.name))
		return
	}
	for _, what := range []string{"uid", "resourceVersion"} {
		if was := text(body, "metadata", what); was != "" && was != text(old, "metadata", what) {
			a.count("conflict " + request)
			fail(w, http.StatusConflict, "Conflict", what+" is another")
			return
		}
	}
	if r.Method == http.MethodPatch {
		body = merged(old, body)
	}
	a.put(body)
	answer(w, http.StatusOK, body)
}

// merged returns an object after a JSON merge patch (RFC 7396).
func merged(old, patch object) object {
	now := maps.Clone(old)
	for k, v := range patch {
		inner, is := v.(object)
		before, was := old[k].(object)
		switch {
		case v == nil:
			delete(now, k)
		case is && was:
			now[k] = merged(before, inner)
		default:
			now[k] = v
		}
	}
	return now
}

// create stores an object that a client sends, in JSON.
func (a *API) create(w http.ResponseWriter, r *http.Request, at ref) {
	a.count("create " + at.plural)
	var o object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		fail(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", err.Error())
		return
	}
	at.name = text(o, "metadata", "name")
	if meta, ok := o["metadata"].(object); ok && at.namespace != "" {
		meta["namespace"] = at.namespace
	}
	a.mu.Lock()
	there := a.objects[at] != nil
	known := at.group != antreaGroup || a.kinds[at.plural]
	a.mu.Unlock()
	if !known {
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	if there {
		fail(w, http.StatusConflict, "AlreadyExists", at.name+" already exists")
		return
	}
	a.put(o)
	answer(w, http.StatusCreated, o)
}

func (a *API) count(what string) {
	a.mu.Lock()
	a.requests[what]++
	before := a.before[what]
	delete(a.before, what)
	a.mu.Unlock()
	if before != nil {
		before()
	}
}

// collection lists or watches a resource.
func (a *API) collection(w http.ResponseWriter, r *http.Request, of ref, version string) {
	q := r.URL.Query()
	a.mu.Lock()
	known := of.group != antreaGroup || a.kinds[of.plural] && antreaVersion(of.plural) == version
	stream := q.Get("sendInitialEvents") == "true"
	refused := stream && a.plain
	a.mu.Unlock()
	choose := selector(q.Get("fieldSelector"))
	switch {
	case !known:
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case refused:
		fail(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden")
	case q.Get("watch") != "":
		a.count("watch " + of.plural)
		a.watch(w, r, of, choose, stream)
	default:
		a.count("list " + of.plural)
		items, v := a.list(of, choose)
		apiVersion, kind := typeOf(of)
		answer(w, http.StatusOK, object{"kind": kind + "List", "apiVersion": apiVersion, "metadata": object{"resourceVersion": v}, "items": items})
	}
}

func (a *API) list(of ref, choose func(object) bool) ([]object, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []object{}
	for r, o := range a.objects {
		if r.group == of.group && r.plural == of.plural && choose(o) {
			items = append(items, o)
		}
	}
	return items, fmt.Sprint(a.version)
}

// selector reads a field selector of = and !=.
func selector(s string) func(object) bool {
	return func(o object) bool {
		for term := range strings.SplitSeq(s, ",") {
			path, want, equal := strings.Cut(term, "=")
			path, unequal := strings.CutSuffix(path, "!")
			if equal && (text(o, strings.Split(path, ".")...) == want) == unequal {
				return false
			}
		}
		return true
	}
}

// event returns a change as an event of a watch; kind is "" if the watch does not see it.
func (c *change) event(of ref, choose func(object) bool) (kind string, o object) {
	if c.of.group != of.group || c.of.plural != of.plural {
		return "", nil
	}
	was, is := c.old != nil && choose(c.old), c.new != nil && choose(c.new)
	switch {
	case was && is:
		return "MODIFIED", c.new
	case is:
		return "ADDED", c.new
	case was && c.new == nil:
		return "DELETED", c.old
	case was:
		return "DELETED", c.new
	}
	return "", nil
}

// watch streams events until the client or the server ends it.
func (a *API) watch(w http.ResponseWriter, r *http.Request, of ref, choose func(object) bool, stream bool) {
	a.mu.Lock()
	end := a.watches
	a.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(end, cancel)()
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, o object) {
		json.NewEncoder(w).Encode(object{"type": kind, "object": o})
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if stream {
		var items []object
		var version string
		items, version = a.list(of, choose)
		for _, o := range items {
			send("ADDED", o)
		}
		send("BOOKMARK", a.bookmark(of, version))
		from, _ = strconv.Atoi(version)
	}
	for ctx.Err() == nil {
		news, changed, gone := a.since(from)
		if gone {
			send("ERROR", statusObject(http.StatusGone, "Expired", "too old resource version"))
			return
		}
		for _, c := range news {
			if kind, o := c.event(of, choose); kind != "" {
				send(kind, o)
			}
			from = c.version
		}
		w.(http.Flusher).Flush()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// bookmark is the event that ends a streamed list. Its type is the listed one.
func (a *API) bookmark(of ref, version string) object {
	o := object{"metadata": object{"resourceVersion": version, "annotations": object{"k8s.io/initial-events-end": "true"}}}
	o["apiVersion"], o["kind"] = typeOf(of)
	return o
}

// typeOf is the apiVersion and kind of a resource.
func typeOf(of ref) (apiVersion, kind string) {
	kinds := map[string]string{
		"nodes": "Node", "namespaces": "Namespace", "services": "Service", "pods": "Pod", "endpointslices": "EndpointSlice",
		"networkpolicies": "NetworkPolicy", "tiers": "Tier", "clusternetworkpolicies": "ClusterNetworkPolicy",
		"clustergroups": "ClusterGroup", "groups": "Group", "externalentities": "ExternalEntity", "externalnodes": "ExternalNode", "egresses": "Egress", "externalippools": "ExternalIPPool",
		"trafficcontrols": "TrafficControl", "antreaagentinfos": "AntreaAgentInfo",
		"traceflows": "Traceflow", "adminnetworkpolicies": "AdminNetworkPolicy",
	}
	switch of.group {
	case "":
		apiVersion = "v1"
	case antreaGroup:
		apiVersion = antreaGroup + "/" + antreaVersion(of.plural)
	default:
		apiVersion = of.group + "/v1"
	}
	return apiVersion, kinds[of.plural]
}

// since returns the changes after a version, and a channel that closes with the next change.
func (a *API) since(version int) (news []change, changed chan struct{}, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.history {
		if c.version > version {
			news = append(news, c)
		}
	}
	return news, a.changed, version < a.oldest
}
