package api

import (
	"context"
	"encoding/json"
	"net/url"
)

// Listing is a table of objects, with the objects themselves. It answers a kind's path with
// format=table.
type Listing struct {
	Columns []Column `json:"columns"`
	Items   []Item   `json:"items"`
}

// Column is a column of a Listing. A counter changes as packets pass.
type Column struct {
	Name    string `json:"name"`
	Counter bool   `json:"counter,omitempty"`
}

// Item is an object of a Listing.
type Item struct {
	Object    string            `json:"object,omitempty"` // KIND/NAMESPACE/NAME; empty for watches, which are not objects
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	Lines     [][]string        `json:"lines"`  // cells, one for each column
	Record    json.RawMessage   `json:"record"` // the object as in format=json
}

// List requests the objects at a path. A wide table has more columns or more lines.
func (c *Client) List(ctx context.Context, path string, wide bool) (*Listing, error) {
	q := url.Values{"format": {"table"}}
	if wide {
		q.Set("wide", "1")
	}
	l := new(Listing)
	return l, c.JSON(ctx, path, q, l)
}
