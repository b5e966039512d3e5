//go:build linux && !portable

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/listing"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// dropsFlags are the flags of drops.
type dropsFlags struct {
	from   source
	query  api.DropQuery
	follow bool
	all    bool
}

func dropsCommand() *cobra.Command {
	var d dropsFlags
	c := &cobra.Command{
		Use:   "drops",
		Short: "Print the last packets that were dropped: where, why and because of whom",
		Long: `Print the last packets that the switch dropped, oldest first: when, from which Pod or port, for which
reason, in which table, because of which object, the packet, conntrack's answer, and the flow entry. If the Pod is
isolated, the objects are the policies that isolate it.

An agent always records dropped packets, with the first 128 bytes (-o json). It keeps the last 4096 (drops.keep of
its configuration). A flood from one port does not displace other ports' packets; packets that were not kept are
counted (dump-drops).

With --sums it prints the packet counters of each port: received + made + copied + cut = queued + agent + dropped +
held for packets that entered by it, and handed = sent + refused for those that left by it.`,
		Example: "  antrail drops --node node-a\n  antrail drops -f --pod default/web-a\n  antrail drops --reason ct_full -n 5 -o json\n  antrail drops --sums --node node-a",
		Args:    noArgs,
	}
	d.from.addAgentTo(c)
	f := c.Flags()
	f.BoolVarP(&d.follow, "follow", "f", false, "go on with packets that are dropped from now on")
	f.IntVarP(&d.query.Last, "last", "n", 50, "print at most so many of the kept packets; 0 for all")
	f.StringVar(&d.query.Pod, "pod", "", "only packets of this Pod, as namespace/name: those it sent, and those from or to its address")
	f.StringVar(&d.query.Reason, "reason", "", "only packets that were dropped for this reason")
	f.BoolVar(&d.all, "sums", false, "print the packet counters of each port instead of the last dropped packets; fails if they do not add up")
	for _, other := range []string{"follow", "last", "pod", "reason"} {
		c.MarkFlagsMutuallyExclusive("sums", other)
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return d.run(c) }
	return c
}

func (d *dropsFlags) run(c *cobra.Command) error {
	forms := []string{"text", "json", "yaml"}
	if !slices.Contains(forms, d.from.output) || d.follow && d.from.output == "yaml" {
		return usageError{errors.New("--output is text, json or, without --follow, yaml")}
	}
	if d.query.Last < 0 {
		return usageError{errors.New("--last must not be negative")}
	}
	client, err := d.from.client(io.Discard)
	if err != nil {
		return err
	}
	if d.all {
		return d.printPacketCounters(c, client)
	}
	if d.follow {
		return client.FollowDrops(c.Context(), &d.query, d.teller(c.OutOrStdout()), func(note string) { fmt.Fprintln(c.ErrOrStderr(), note) })
	}
	all, err := client.DroppedPackets(c.Context(), &d.query)
	if err != nil {
		return err
	}
	return d.print(c.OutOrStdout(), c.ErrOrStderr(), all)
}

func (d *dropsFlags) print(w, notes io.Writer, all *api.DroppedPackets) error {
	if d.from.output == "text" {
		if all.Missed > 0 {
			fmt.Fprintf(notes, "%d packets were dropped too fast to be kept; dump-drops counts them\n", all.Missed)
		}
		if all.Note != "" {
			fmt.Fprintln(notes, all.Note)
		}
		return api.WriteDrops(w, all.Packets)
	}
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetIndent("", "  ")
	to.SetEscapeHTML(false)
	err := to.Encode(all)
	text := b.Bytes()
	if err == nil && d.from.output == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printPacketCounters prints the packet counters. If they do not add up, the error says
// where.
func (d *dropsFlags) printPacketCounters(c *cobra.Command, client *api.Client) error {
	if err := d.from.get(c, "/sums", d.from.query()); err != nil {
		return err
	}
	var r api.PacketCountersRecord
	if err := client.JSON(c.Context(), "/sums", nil, &r); err != nil {
		return err
	}
	if r.Fault != "" {
		return errors.New(r.Fault)
	}
	return nil
}

// teller prints packets one by one, in aligned columns if they fit.
func (d *dropsFlags) teller(w io.Writer) func(*api.DroppedPacket) error {
	if d.from.output == "json" {
		to := json.NewEncoder(w)
		to.SetEscapeHTML(false)
		return func(p *api.DroppedPacket) error { return to.Encode(p) }
	}
	widths := listing.Widths{15, 20, 8, 18, 36, 50, 7}                // most values fit below their heading
	fmt.Fprintln(w, widths.Pad(strings.Split(api.DropColumns, "\t"))) // an error of w comes again with the first packet
	return func(p *api.DroppedPacket) error {
		_, err := fmt.Fprintln(w, widths.Pad(strings.Split(p.Line(), "\t")))
		return err
	}
}
