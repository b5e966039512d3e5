package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Forms of output.
const (
	FormTree    = "tree"    // for reading
	FormOFProto = "ofproto" // as ofproto/trace prints; for walks with Text
	FormVPP     = "vpp"     // as VPP's "show trace" prints
	FormJSON    = "json"    // a line for each way: an array of walks
	FormMermaid = "mermaid" // a flowchart with a box for each way
	FormPcapng  = "pcapng"  // a capture; not for a terminal
	FormPaths   = "paths"   // distinct ways and their number of packets, at the end
)

// Printer prints ways in a form. Call End once, after the last one.
type Printer interface {
	Print(Joined) error
	End() error
}

// forms are the forms, the default first.
var forms = []struct {
	name string
	make func(io.Writer) Printer
}{
	{FormTree, func(w io.Writer) Printer { return each{w, WriteTree} }},
	{FormOFProto, func(w io.Writer) Printer { return each{w, writeOFProto} }},
	{FormVPP, func(w io.Writer) Printer { return each{w, writeVPP} }},
	{FormJSON, func(w io.Writer) Printer { return each{w, WriteJSON} }},
	{FormMermaid, func(w io.Writer) Printer { return &mermaid{w: w} }},
	{FormPcapng, func(w io.Writer) Printer { return &capture{to: w, places: map[string]int{}} }},
	{FormPaths, func(w io.Writer) Printer { return &paths{w: w} }},
}

// Forms lists their names.
func Forms() (names []string) {
	for _, f := range forms {
		names = append(names, f.name)
	}
	return names
}

// NewPrinter makes the printer of a form. The error lists the forms.
func NewPrinter(form string, w io.Writer) (Printer, error) {
	for _, f := range forms {
		if f.name == form {
			return f.make(w), nil
		}
	}
	return nil, fmt.Errorf("there is no form %q of walks; there are %s", form, strings.Join(Forms(), ", "))
}

// each prints each way by itself.
type each struct {
	w     io.Writer
	write func(io.Writer, Joined) error
}

// Print implements Printer.
func (e each) Print(way Joined) error { return e.write(e.w, way) }

// End implements Printer.
func (e each) End() error { return nil }

func writeOFProto(w io.Writer, way Joined) error {
	for _, walk := range way {
		if _, err := io.WriteString(w, walk.Text+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes a way as a line of a recording.
func WriteJSON(w io.Writer, way Joined) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(way)
}
