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
		Short: "Draw the pipeline as a map: tables, jumps between them, and traffic",
		Long: `Draw the pipeline as a map. Stages are columns, tables boxes. An arrow means that a flow entry leads there by
goto_table, resubmit, ct() or a group, or makes an entry there by learn. The counters of a running agent make busy
arrows thick; drops are red.

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
	c.Flags().Lookup("write").Usage = "file to write; - is standard output"
	c.Flags().StringVar(&f.theme, "theme", "auto", "colours of a picture: light, dark, or what its viewer prefers (auto)")
	c.Flags().StringVar(&f.focus, "focus", "", "highlight this table in a picture, with the arrows to it and from it")
	c.Flags().StringVar(&f.packet, "packet", "", "highlight this packet's way in a picture, with numbered tables; a flow, as for trace")
	c.MarkFlagsMutuallyExclusive("packet", "focus")
	c.Flags().DurationVar(&f.over, "over", 0, "read twice, this long apart, and show rates per second instead of totals")
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
		return usageError{errors.New("--packet needs -o svg")}
	}
	if f.over < 0 {
		return usageError{errors.New("--over must not be negative; example: 1s")}
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
	m, load, err := f.readMap(c.Context(), client)
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

// walkOf is the walk of a made-up packet.
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

// readMap reads the map, twice for rates.
func (f *mapFlags) readMap(ctx context.Context, client *api.Client) (*diagram.Map, *diagram.Load, error) {
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
