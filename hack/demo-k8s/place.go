package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	controlNS  = "antrail-demo-cp" // control plane, underlay, and the world outside
	controlIP  = "192.168.77.1"
	controlIP6 = "fd00:77::1"
	underlay   = "br-underlay"
)

func netnsPath(name string) string { return "/run/netns/" + name }

// cluster is everything that runs.
type cluster struct {
	*options
	nodes   []*node
	started []*os.Process // in the order of their start
}

func newCluster(o *options) *cluster {
	c := &cluster{options: o}
	for i := range 2 {
		c.nodes = append(c.nodes, newNode(c, i+1))
	}
	return c
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// command runs a program to its end; an error has what it said.
func command(argv ...string) error {
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// commands runs lines, words between spaces, until one fails.
func commands(lines ...string) error {
	for _, l := range lines {
		if err := command(strings.Fields(l)...); err != nil {
			return err
		}
	}
	return nil
}

// upUnderlay makes the namespace of the control plane with a bridge.
func (c *cluster) upUnderlay() error {
	in := "ip -n " + controlNS + " "
	return commands(
		"ip netns add "+controlNS,
		in+"link set lo up",
		in+"link add "+underlay+" type bridge",
		in+"addr add "+controlIP+"/24 dev "+underlay,
		in+"addr add "+controlIP6+"/64 dev "+underlay+" nodad",
		in+"link set "+underlay+" up",
	)
}

// start begins a process that stays, with its output in NAME.log. It records the pid, so that a
// later run finds the process if this one is killed.
func (c *cluster) start(name, group string, argv ...string) (*os.Process, error) {
	log, err := os.Create(c.file(name + ".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if group != "" { // the shell moves itself, and so all that comes of it
		cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}, argv...)
		if cmd.Path, err = exec.LookPath("sh"); err != nil {
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.started = append(c.started, cmd.Process)
	go runReap(cmd)
	pids, err := os.OpenFile(c.file("pids"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer pids.Close()
	_, err = fmt.Fprintf(pids, "%d %d\n", cmd.Process.Pid, startTime(cmd.Process.Pid))
	return cmd.Process, err
}

// runReap waits for a process, so that it does not stay as a zombie.
func runReap(cmd *exec.Cmd) { cmd.Wait() }

// startTime distinguishes a process from a later one of the same number (proc(5), field 22); 0 if
// it does not exist.
func startTime(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	n, _ := strconv.ParseUint(fields[19], 10, 64)
	return n
}

// inControl is a program in the namespace of the control plane.
func inControl(argv ...string) []string {
	return append([]string{"nsenter", "--net=" + netnsPath(controlNS), "--"}, argv...)
}

// wait repeats until a condition holds, or three minutes are over.
func wait(ctx context.Context, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// down removes everything, and reports what did not go. It also removes what a killed run left.
func (c *cluster) down() error {
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.kill())
	}
	errs = append(errs, c.stopStarted())
	for _, ns := range []string{c.nodes[0].name, c.nodes[1].name, controlNS} {
		if _, err := os.Stat(netnsPath(ns)); err == nil {
			errs = append(errs, command("ip", "netns", "del", ns))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// stopStarted ends the processes that the file pids names and that still are the same, the last
// first. It sends SIGTERM, later SIGKILL.
func (c *cluster) stopStarted() error {
	text, err := os.ReadFile(c.file("pids"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range slices.Backward(lines) {
		var pid int
		var began uint64
		if _, err := fmt.Sscan(line, &pid, &began); err != nil || began == 0 {
			continue
		}
		for i := 0; startTime(pid) == began && i < 100; i++ {
			signal := syscall.SIGTERM
			if i >= 50 {
				signal = syscall.SIGKILL
			}
			syscall.Kill(pid, signal)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return os.Remove(c.file("pids"))
}

// tellLogs prints the last lines of every log.
func (c *cluster) tellLogs(w io.Writer) {
	logs, _ := filepath.Glob(c.file("*.log"))
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil || len(text) == 0 {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		lines = lines[max(0, len(lines)-6):]
		for i, l := range lines {
			lines[i] = l[:min(len(l), 400)]
		}
		fmt.Fprintf(w, "---- %s\n%s\n", filepath.Base(name), strings.Join(lines, "\n"))
	}
	c.tellAgents(w)
}
