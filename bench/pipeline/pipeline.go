package pipeline

import (
	"context"
	"errors"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/workload"
)

// pipelineNote says what the profiles of Antrea's pipeline measure.
const pipelineNote = "Packets from db-a to client-a on the pipeline of examples/two-nodes, whose 31 tables all have entries. " + aloneNote

// aloneNote says how all profiles of a pipeline are measured.
const aloneNote = "\"Pipeline alone\" is less the cost of the same packets with a single entry that outputs them, measured in windows in turn. " +
	"A window is thrown away in which the thread that is measured waited for a processor for more than 2 % of the time, or the machine for its host; where there is not half of what a round should have of others, windows disturbed for up to 10 % are used and told; without them, and where the difference is not above 0, the round has no figure. " +
	"antrail: ports in memory, batches of 64, one thread, wall time. " +
	"Open vSwitch: userspace datapath, packets in by AF_XDP and out by a port that counts them and throws them away, the polling thread's own count of cycles per packet, as time by the rate at which it counts; windows with packets that took the slow path, since the datapath forgot its flows while it rested, are thrown away."

const hairpinNote = "Hairpin: client-a reaches itself by the ClusterIP of a Service whose endpoints are all in it. Its packets pass both ct zones, that of all connections, where the destination is translated, and that of SNAT, and go out where they came in; each first one begins an entry in either."

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
	c.Notes = append(c.Notes, hairpinNote, installNote)
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
