package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/diagram"
	"github.com/spf13/cobra"
)

// mapFlags are the flags of pipeline.
type mapFlags struct {
	from                source
	write, theme, focus string
	packet              string
	over                time.Duration
}

// mapForms are the forms of a map, the usual one first.
var mapForms = []string{"table", "svg", "dot", "mermaid", "json"}

// themes are the colours of a picture by name.
var themes = map[string]diagram.Theme{"auto": diagram.Auto, "light": diagram.Light, "dark": diagram.Dark}

func pipelineCommand() *cobra.Command {
	f := &mapFlags{}
	c := &cobra.Command{
		Use:   "pipeline",
		Short: "Draw the pipeline as a map: tables, the ways between them, what passes",
		Long: `Draw the pipeline as a map. Stages are columns, tables boxes; an arrow is there because a flow entry
goes there by goto_table, resubmit, ct() or a group, or makes an entry there by learn. What the entries
of a running agent have counted makes the busy ways thick; what is dropped is red.

The picture (svg) stands alone, for a light and a dark page; dot is for Graphviz, mermaid for documents
that draw it themselves.`,
		Example: "  antrail pipeline -o svg --packet " + examplePacket + " " + nodeFiles + " -w -\n  antrail pipeline --manifests examples/web-app --node node-a\n  antrail pipeline -o svg -w pipeline.svg --node node-a" +
			"\n  antrail pipeline -o svg --over 1s -w - >now.svg\n  antrail pipeline -o dot " + nodeFiles + "\n  antrail pipeline --program uplink -o svg -w -",
		Args: noArgs,
	}
	f.from.addTo(c)
	output := c.Flags().Lookup("output")
	output.Usage, output.DefValue, f.from.output = strings.Join(mapForms, ", "), mapForms[0], mapForms[0]
	addWrite(c, &f.write)
	c.Flags().Lookup("write").Usage = "write to this file; - is standard output"
	c.Flags().StringVar(&f.theme, "theme", "auto", "colours of a picture: light, dark, or what its viewer prefers (auto)")
	c.Flags().StringVar(&f.focus, "focus", "", "let this table stand out in a picture, with the ways to it and from it")
	c.Flags().StringVar(&f.packet, "packet", "", "let the way of this packet stand out in a picture, its tables numbered; a flow, as trace takes it")
	c.MarkFlagsMutuallyExclusive("packet", "focus")
	c.Flags().DurationVar(&f.over, "over", 0, "look twice, this long apart, and show what passes in a second in place of what was ever counted")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.draw(c) }
	return c
}

func (f *mapFlags) check() error {
	if !slices.Contains(mapForms, f.from.output) {
		return usageError{fmt.Errorf("--output is %s", strings.Join(mapForms, ", "))}
	}
	if _, ok := themes[f.theme]; !ok {
		return usageError{errors.New("--theme is auto, light or dark")}
	}
	if f.packet != "" && f.from.output != "svg" {
		return usageError{errors.New("--packet goes with -o svg")}
	}
	if f.over < 0 {
		return usageError{errors.New("--over is a time, such as 1s")}
	}
	return nil
}

func (f *mapFlags) draw(c *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	client, err := f.from.client(c.ErrOrStderr())
	if err != nil {
		return err
	}
	m, load, err := f.look(c.Context(), client)
	if err != nil {
		return err
	}
	o := diagram.Options{Theme: themes[f.theme], Load: load, Focus: f.focus}
	if f.focus != "" && !slices.ContainsFunc(m.Tables, func(t diagram.Table) bool { return t.Name == f.focus }) {
		return fmt.Errorf("there is no table %q", f.focus)
	}
	if f.packet != "" {
		if o.Walk, o.Dropped, err = walkOf(c.Context(), client, f.packet); err != nil {
			return err
		}
		o.Load = nil
	}
	if f.write == "" || f.write == "-" {
		return f.print(c.OutOrStdout(), m, o)
	}
	out, err := os.Create(f.write)
	if err != nil {
		return err
	}
	return errors.Join(f.print(out, m, o), out.Close())
}

// walkOf is the way of a packet that is made up.
func walkOf(ctx context.Context, client *api.Client, packet string) ([]diagram.Hop, bool, error) {
	b, err := client.Post(ctx, "/trace", url.Values{"format": {"json"}}, &api.TraceRequest{Flow: packet})
	if err != nil {
		return nil, false, err
	}
	var a api.TraceAnswer
	if err := json.Unmarshal(b, &a); err != nil || a.Walk == nil {
		return nil, false, fmt.Errorf("answer to a trace without the walk: %w", err)
	}
	hops, dropped := api.HopsOf(a.Walk)
	return hops, dropped, nil
}

// look asks for the map, and once more when rates are wanted.
func (f *mapFlags) look(ctx context.Context, client *api.Client) (*diagram.Map, *diagram.Load, error) {
	m, err := client.Map(ctx)
	if err != nil {
		return nil, nil, err
	}
	if f.over == 0 {
		return m, m.Total(), nil
	}
	began := time.Now()
	select {
	case <-time.After(f.over):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	now, err := client.Map(ctx)
	if err != nil {
		return nil, nil, err
	}
	return now, now.Since(m, time.Since(began)), nil
}

func (f *mapFlags) print(w io.Writer, m *diagram.Map, o diagram.Options) error {
	switch f.from.output {
	case "svg":
		return m.SVG(w, o)
	case "dot":
		return m.DOT(w)
	case "mermaid":
		return m.Mermaid(w)
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(m)
	}
	return m.Text(w, o.Load)
}
