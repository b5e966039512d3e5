package web

import (
	"context"
	"net/http"
	"testing"
)

// TestNodes asks the Node that a request names, the first when it names none, and all
// together for what passes between them.
func TestNodes(t *testing.T) {
	var o Options
	for _, name := range []string{"node-a", "node-b"} {
		answer := func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.URL.Path + " at " + name)) }
		o.Nodes = append(o.Nodes, Node{Name: name, API: http.HandlerFunc(answer), Counters: func(context.Context) ([]byte, error) {
			return []byte(`{"pipeline":{"tables":[{"id":0,"name":"of ` + name + `"}]}}`), nil
		}})
	}
	o.Watch = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.URL.Path + " at both")) })
	v := newVisit(t, o)
	v.want(v.request("GET", "/shown", ""), 401, "run antrail page")
	v.enter()
	v.want(v.request("GET", "/shown", ""), 200, `["node-a","node-b"]`)
	for query, want := range map[string]string{"": "node-a", "?node=": "node-a", "?node=node-a": "node-a", "?node=node-b": "node-b"} {
		v.want(v.request("GET", "/api/flows"+query, ""), 200, "/flows at "+want)
		v.want(v.request("POST", "/api/trace"+query, ""), 200, "/trace at "+want)
		v.want(v.request("POST", "/api/trace/live"+query, ""), 200, "/trace/live at both")
		v.want(v.request("GET", "/map.svg"+query, ""), 200, want+"</text>")
	}
	for _, path := range []string{"/api/flows", "/map.svg", "/events"} {
		v.want(v.request("GET", path+"?node=node-c", ""), 404, "shows no such Node")
	}
}
