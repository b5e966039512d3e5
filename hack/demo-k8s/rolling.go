package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// rollingUpdate replaces each Node's agent by one that takes over from it. Meanwhile pods of both
// Nodes send requests to one another, by address and by a Service.
func (c *cluster) rollingUpdate() (string, error) {
	held, err := c.holdAll()
	defer func() {
		for _, h := range held {
			h.end()
		}
	}()
	if err != nil {
		return "", err
	}
	if _, err := c.kubectl("rollout", "restart", "-n", "kube-system", "daemonset/antrail"); err != nil {
		return "", err
	}
	if err := c.allReady(); err != nil {
		return "", err
	}
	if err := c.takenOver(); err != nil {
		return "", err
	}
	var seen []string
	for _, h := range held {
		said, err := h.end()
		if err != nil {
			return "", fmt.Errorf("%w%s", err, c.lastWords())
		}
		seen = append(seen, said)
	}
	return strings.Join(seen, "; "), nil
}

// takenOver returns an error unless the log of every agent and switch says that it took over from
// another.
func (c *cluster) takenOver() error {
	agents, err := c.agents()
	if err != nil {
		return err
	}
	for _, pod := range agents {
		for container, want := range map[string]string{"agent": "the previous agent has left", "switch": "taken over from the previous switch"} {
			said, err := c.kubectl("logs", "-n", "kube-system", pod, "-c", container)
			if err != nil || !strings.Contains(said, want) {
				return fmt.Errorf("%s of %s did not take over: %s, %v", container, pod, said[max(0, len(said)-2000):], err)
			}
		}
	}
	return nil
}

// lastWords are the ends of the agents' logs. They are read now, because the next check deletes
// these agents.
func (c *cluster) lastWords() (said string) {
	agents, err := c.agents()
	for _, pod := range agents {
		text, err := c.kubectl("logs", "--tail=30", "-n", "kube-system", pod)
		said += fmt.Sprintf("\n%s: %v\n%s", pod, err, text)
	}
	if err != nil {
		said += "\n" + err.Error()
	}
	return said
}

// holdAll starts a hold from the client of each Node to a pod of the other Node and to a Service.
// With an error, it returns those that have begun.
func (c *cluster) holdAll() (held []*holding, err error) {
	for i, n := range c.nodes {
		_, ip, err := c.pod("web", c.nodes[1-i])
		if err != nil {
			return held, err
		}
		for _, to := range []string{ip + ":8080", "web:80"} {
			h, err := c.hold(n, to)
			if err != nil {
				return held, err
			}
			held = append(held, h)
		}
	}
	return held, nil
}

// holding is a pod that sends requests over one connection.
type holding struct {
	cmd         *exec.Cmd
	input       io.Closer
	said, wrong bytes.Buffer
	ended       bool
}

// hold starts a hold in the client pod of a Node.
func (c *cluster) hold(n *node, address string) (*holding, error) {
	name, _, err := c.pod("client", n)
	if err != nil {
		return nil, err
	}
	h := &holding{cmd: c.kubectlCommand(context.Background(), "exec", "-i", name, "--", "/pod", "hold", address)}
	h.cmd.Stdout, h.cmd.Stderr = &h.said, &h.wrong
	if h.input, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return h, h.cmd.Start()
}

// end stops it, once, and returns its output.
func (h *holding) end() (string, error) {
	if h.ended {
		return "", nil
	}
	h.ended = true
	h.input.Close()
	if err := h.cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(h.cmd.Args[len(h.cmd.Args)-2:], " "), err, bytes.TrimSpace(h.wrong.Bytes()))
	}
	return strings.TrimSpace(h.said.String()), nil
}
