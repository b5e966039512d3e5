package pods

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
)

// iperf3 as a load. It is what most people measure a network with, so its figure must be on the page
// beside those of the rig's own streams. Both ends are processes in the pods' namespaces. The figure is
// what the server says that it has received, in iperf3's JSON.
//
// iperf3 counts time in whole seconds only, so it is given an amount: what the rig's own stream has just
// moved in a window. A slower contender takes longer.

// iperfProgram is the program, and the name of Debian's package.
const iperfProgram = "iperf3"

const (
	// leastIperfBytes is the smallest amount. When the client has sent all, some megabytes may still
	// be under way, and the server does not count them.
	leastIperfBytes = 16 << 20
	// iperfTimeout is how long one run of iperf3 may take.
	iperfTimeout = 20 * time.Second
)

// iperfNote says how iperf3 is measured.
const iperfNote = "iperf3: the rate that its server received, from the first byte on. All streams together send as much as the single stream above moved in a window, and at least 16 MB."

// noteIperf adds a note to the comparison: how iperf3 is measured, or that its lines are missing.
func noteIperf(r *rig.Rig, c *report.Comparison) {
	why := missingIperf()
	if why == nil {
		c.Notes = append(c.Notes, iperfNote)
		return
	}
	missing := report.MissingError{Name: "lines " + iperfProgram, Why: why}
	c.Notes = append(c.Notes, missing.Error())
	r.Say("%v", missing)
}

// missingIperf says why iperf3 cannot run; nil if it can.
func missingIperf() error {
	if _, err := exec.LookPath(iperfProgram); err != nil {
		return fmt.Errorf("there is no %s in PATH; Debian's package %s has it", iperfProgram, iperfProgram)
	}
	return nil
}

// measureBulk measures the rig's own streams, and those of iperf3 if it is installed.
func measureBulk(ctx context.Context, p *pair, window time.Duration) ([]rig.Reading, error) {
	all, err := measureStreams(ctx, p, window)
	if err != nil || missingIperf() != nil {
		return all, err
	}
	amount := int64(all[0].Value * 1e9 / 8 * window.Seconds()) // of one stream
	for _, of := range []struct {
		name    string
		streams int
	}{{"one stream", 1}, {fmt.Sprintf("%d streams together", manyStreams), manyStreams}} {
		rate, err := p.runIperf(ctx, of.streams, max(amount, leastIperfBytes))
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", iperfProgram, of.name, err)
		}
		all = append(all, rig.Reading{Name: iperfProgram + ", " + of.name, Unit: "Gbit/s", Value: rate})
	}
	return all, nil
}

// runIperf sends so many bytes in streams of iperf3 from the client to the server. It returns the Gbit/s
// that the server received.
func (p *pair) runIperf(ctx context.Context, streams int, amount int64) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, iperfTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		return 0, err
	}
	_, listens, err := net.SplitHostPort(cmp.Or(p.listens, p.address))
	if err != nil {
		return 0, err
	}
	ready, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- p.server(func() error { return runIperfServer(ctx, listens, ready) }) }()
	select {
	case <-ready:
	case err := <-served:
		return 0, errors.Join(err, ctx.Err())
	}
	err = p.client(func() (err error) {
		rate, err = runIperfClient(ctx, "-c", host, "-p", port, "-P", strconv.Itoa(streams), "-n", strconv.FormatInt(amount, 10))
		return err
	})
	if err != nil {
		cancel() // ends the server
		<-served
		return 0, err
	}
	return rate, <-served
}

// runIperfServer serves one client in the calling thread's namespace. It closes ready when the server
// listens.
func runIperfServer(ctx context.Context, port string, ready chan<- struct{}) error {
	cmd := iperfCommand(ctx, "-s", "-1", "-p", port, "--forceflush")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	lines, listens := bufio.NewScanner(out), false
	for !listens && lines.Scan() {
		listens = strings.Contains(lines.Text(), "listening")
	}
	if listens {
		close(ready)
	}
	_, err = io.Copy(io.Discard, out) // until the process ends
	if err = errors.Join(err, sched.Reap(cmd)); err != nil || !listens {
		return fmt.Errorf("the server: %w: %s", cmp.Or(err, errors.New("it did not listen")), cmd.Stderr)
	}
	return nil
}

// runIperfClient runs a client in the calling thread's namespace, and returns the Gbit/s of its report.
func runIperfClient(ctx context.Context, args ...string) (rate float64, err error) {
	cmd := iperfCommand(ctx, append(args, "-J")...)
	var out bytes.Buffer
	cmd.Stdout = &out
	failed := sched.RunCommand(cmd)
	rate, err = readIperfReport(out.Bytes())
	if err != nil || failed != nil {
		return 0, errors.Join(err, failed, ctx.Err())
	}
	return rate, nil
}

// iperfCommand is iperf3 with arguments. It ends with the calling thread or with ctx.
func iperfCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, iperfProgram, append(args, "-4")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = new(bytes.Buffer)
	return cmd
}

// readIperfReport returns the Gbit/s that the server received, by the JSON of a client (iperf3 -J).
func readIperfReport(text []byte) (rate float64, err error) {
	var r struct {
		Error string
		End   struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return 0, fmt.Errorf("%.200q is not iperf3's JSON: %w", text, err)
	}
	if r.Error != "" {
		return 0, errors.New(r.Error)
	}
	if rate = r.End.Received.Rate / 1e9; rate <= 0 {
		return 0, fmt.Errorf("its report has %v Gbit/s received; want more than 0", rate)
	}
	return rate, nil
}
