package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
)

// The Nodes whose switches a page shows: one, or several at whose sockets the same
// command may ask. A request says which by ?node=NAME, and means the first when it
// does not. What passes from one to another is watched at all of them.

// Node is a Node whose switch the page shows.
type Node struct {
	// Name is what browsers call it; "" when there is one that has none.
	Name string
	// API answers for the switch, with paths as the agent's socket has them.
	API http.Handler
	// Counters is what its /counters answers, as JSON.
	Counters func(context.Context) ([]byte, error)
}

// shownNode is a Node, and what it counted last.
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

// at finds the Node that a request asks about; nil, when there is none, and the
// answer that says so is given.
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

// answerShown tells the names of the Nodes, the first one first.
func (p *Page) answerShown(w http.ResponseWriter, _ *http.Request) {
	names := []string{}
	for _, n := range p.nodes {
		names = append(names, n.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(names)
}
