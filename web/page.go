package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
)

// The Nodes of a page: one, or several whose sockets the same command may use. A request names
// one by ?node=NAME; without it, it means the first. A live trace watches packets at all of
// them.

// Node is a Node whose switch the page shows.
type Node struct {
	// Name is the Node's name in the browser; "" for a single Node without one.
	Name string
	// API answers for the switch, with the paths of the agent's socket.
	API http.Handler
	// Counters returns the answer to /counters, as JSON.
	Counters func(context.Context) ([]byte, error)
}

// shownNode is a Node with its last counters.
type shownNode struct {
	Node
	sampler sampler
}

// Page serves the page. Any number of goroutines may call ServeHTTP.
type Page struct {
	nodes  []*shownNode
	watch  http.Handler
	plots  string
	log    *slog.Logger
	door   door
	inside http.Handler // for those who were let in
}

// at finds the Node of a request. If there is none, it answers with an error and returns nil.
func (p *Page) at(w http.ResponseWriter, r *http.Request) *shownNode {
	name := r.URL.Query().Get("node")
	if name == "" {
		return p.nodes[0]
	}
	for _, n := range p.nodes {
		if n.Name == name {
			return n
		}
	}
	http.Error(w, "404: this page shows no such Node", http.StatusNotFound)
	return nil
}

// answerShown sends the names of the Nodes, the default first.
func (p *Page) answerShown(w http.ResponseWriter, _ *http.Request) {
	names := []string{}
	for _, n := range p.nodes {
		names = append(names, n.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(names)
}
