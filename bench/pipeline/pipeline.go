package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// pipelineNotes say what the profiles of Antrea's pipeline measure.
var pipelineNotes = append([]string{
	"Packets go from db-a to client-a through the pipeline of examples/two-nodes. All of its 31 tables have entries.",
}, aloneNotes...)

// aloneNotes say how all profiles of a pipeline are measured.
var aloneNotes = []string{
	"\"Pipeline alone\" is the cost of a packet less the cost of the same packet with a single entry that outputs it. The rig measures both in alternating windows.",
	"A window is disturbed if the measured thread waited for a processor, or the host held the machine's processors, for more than 2 % of the time. The rig discards disturbed windows.",
	"If fewer than half of a round's windows are undisturbed, the rig also uses windows disturbed for up to 10 %, and counts them. A round without such windows has no figure. It also has none if the difference is not above 0.",
	"antrail: ports in memory, batches of 64, one thread, wall time.",
	"Open vSwitch: userspace datapath. Packets enter by AF_XDP and leave by a port that counts and drops them. The figure is the polling thread's own cycles per packet, converted to time.",
	"Open vSwitch forgets its flows while it rests. The rig discards windows in which packets took its slow path.",
}

var hairpinNotes = []string{
	"Hairpin: client-a reaches itself by the ClusterIP of a Service that has all its endpoints in client-a. Its packets leave by the port that they came from.",
	"Hairpin packets pass two ct zones: the pods' zone, which translates the destination, and the SNAT zone. The first packet of a connection makes an entry in each.",
}

// RunPipeline is profile pipeline: the cost of known and new connections, of installing entries, and of
// each table.
func RunPipeline(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	program, err := workload.ServiceProgram(1)
	if err != nil {
		return err
	}
	batch, err := newInstallTest(program.Names)
	if err != nil {
		return err
	}
	c.Notes = slices.Concat(c.Notes, hairpinNotes, installNotes)
	t := &programTest{program: program, kinds: pipelineKinds(), install: batch}
	if r.Wants(antrailName) {
		if t.tables, err = openTableTimes(program); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.tables.close()) }()
	}
	err = runTest(ctx, r, c, t)
	if t.tables != nil {
		r.AddComparison(t.tables.comparison(c.Machine))
	}
	return err
}

// pipelineKinds are packets between two pods, to a ClusterIP, and of a pod to itself by a ClusterIP. The
// last ones pass both ct zones.
func pipelineKinds() []*workload.Packets {
	return []*workload.Packets{
		workload.KnownConnection(), workload.ManyConnections(), workload.NewConnections(),
		workload.NewToService(), workload.KnownHairpin(), workload.NewHairpins(),
	}
}
