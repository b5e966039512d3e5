package ovs

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/internal/unixctl"
)

// Connections is how many connections the switch tracks.
func (s *Switch) Connections(ctx context.Context) (int, error) {
	out, err := s.Appctl(ctx, "dpctl/ct-get-nconns")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// runProgram runs one of Open vSwitch's tools.
func (s *Switch) runProgram(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.Environment()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := sched.RunCommand(cmd); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, errs.String())
	}
	return nil
}

// Vsctl runs ovs-vsctl.
func (s *Switch) Vsctl(ctx context.Context, args ...string) error {
	return s.runProgram(ctx, "ovs-vsctl", append([]string{"--db=unix:" + s.Path("db.sock"), "--timeout=20"}, args...)...)
}

// Appctl gives the switch a command as ovs-appctl does, and returns the answer. It starts no process.
func (s *Switch) Appctl(ctx context.Context, command string, args ...string) (string, error) {
	return unixctl.Call(ctx, s.Path("vs.ctl"), daemonTimeout, command, args...)
}

// AppctlUntilDone repeats a command until it succeeds. The switch learns the kernel's addresses a moment
// after they are set.
func (s *Switch) AppctlUntilDone(ctx context.Context, command ...string) error {
	for deadline := time.Now().Add(daemonTimeout); ; sched.Wait(ctx, 50*time.Millisecond) {
		_, err := s.Appctl(ctx, command[0], command[1:]...)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// PacketsSent is how many packets a port has sent. It asks the switch itself: under chrt(1) threads that
// never sleep leave no processor to a program that must be started and reaped meanwhile.
func (s *Switch) PacketsSent(ctx context.Context, port string) (float64, error) {
	text, err := s.Appctl(ctx, "dpctl/show", "-s", "netdev@ovs-netdev")
	if err != nil {
		return 0, err
	}
	return parseSent(text, port)
}

// parseSent reads from the answer to dpctl/show -s how many packets a port has sent.
func parseSent(text, port string) (float64, error) {
	_, its, _ := strings.Cut(text, ": "+port+" ")
	_, sent, found := strings.Cut(its, "TX packets:")
	number, _, _ := strings.Cut(sent, " ")
	if !found {
		return 0, fmt.Errorf("dpctl/show tells of no packets that %s sent:\n%s", port, text)
	}
	return strconv.ParseFloat(number, 64)
}
