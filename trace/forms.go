package trace

import (
	"encoding/json"
	"io"
)

// Forms of output.
const (
	FormTree    = "tree"    // for reading
	FormOFProto = "ofproto" // as ofproto/trace prints; of walks with Text
	FormJSON    = "json"    // a line for each way: an array of walks
)

// writers write one way each.
var writers = map[string]func(io.Writer, Joined) error{
	FormTree: WriteTree, FormOFProto: writeOFProto, FormJSON: writeJSON,
}

// Forms lists them, the usual one first.
func Forms() []string { return []string{FormTree, FormOFProto, FormJSON} }

// Writer is what writes ways in a form; false when there is no such form.
func Writer(form string) (write func(io.Writer, Joined) error, ok bool) {
	write, ok = writers[form]
	return write, ok
}

func writeOFProto(w io.Writer, way Joined) error {
	for _, walk := range way {
		if _, err := io.WriteString(w, walk.Text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(w io.Writer, way Joined) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(way)
}
