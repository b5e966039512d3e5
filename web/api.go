package web

import (
	"net/http"
	"strings"
)

// The page's requests to the agent have the paths of its socket, below /api. The page forwards
// only requests that show something. Requests that flush, attach or take over need access to
// the socket.

// shown are the requests that the page forwards.
var shown = []string{
	"GET /readyz", "GET /flows", "GET /groups", "GET /meters", "GET /ports", "GET /workers", "GET /tables", "GET /conntrack", "GET /conntrack/stats",
	"GET /cache", "GET /fdb", "GET /drops", "GET /drops/last", "GET /watches", "GET /services", "GET /pods", "GET /policies", "GET /egresses",
	"GET /trafficcontrols", "GET /cookies", "GET /explain", "GET /object", "GET /nodes", "POST /trace", "POST /trace/live",
}

// maxRequest bounds the body of a trace's request, in bytes. Serve hands on only requests whose body
// is complete, so no handler waits for a slow sender.
const maxRequest = 64 << 10

// addAPI adds the requests that are shown.
func (p *Page) addAPI(mux *http.ServeMux) {
	api := http.StripPrefix("/api", http.HandlerFunc(p.handOn))
	for _, pattern := range shown {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /api"+path, api)
	}
}

// handOn forwards a request to its Node, or to all of them.
func (p *Page) handOn(w http.ResponseWriter, r *http.Request) {
	if p.watch != nil && r.URL.Path == "/trace/live" {
		p.watch.ServeHTTP(w, r)
	} else if n := p.at(w, r); n != nil {
		n.API.ServeHTTP(w, r)
	}
}
