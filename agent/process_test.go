package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"sigs.k8s.io/yaml"
)

// Agents as processes of their own, in a Node's namespace: this test binary is one
// when processEnv names a configuration.

const processEnv = "ANTRAIL_TEST_AGENT"

// takeOverArg has such a process take over; with orLeaveArg, the agent that runs leaves
// if that cannot be.
const (
	takeOverArg = "take-over"
	orLeaveArg  = "or-leave"
)

// How such a process ends.
const (
	exitFailed    = 1
	exitTakenOver = 10
	exitAgain     = 11
)

func TestMain(m *testing.M) {
	if config := os.Getenv(processEnv); config != "" {
		os.Exit(runProcess(config, predecessor(os.Args)))
	}
	os.Exit(m.Run())
}

func predecessor(args []string) Predecessor {
	switch {
	case slices.Contains(args, orLeaveArg):
		return HandsOverOrLeaves
	case slices.Contains(args, takeOverArg):
		return HandsOver
	}
	return Stays
}

func runProcess(config string, before Predecessor) int {
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	c, err := LoadConfig(config)
	if err == nil {
		err = Run(ctx, c, c.Log.NewLog(os.Stderr), before)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "ended:", err)
	switch {
	case errors.Is(err, ErrAgain):
		return exitAgain
	case errors.Is(err, ErrTakenOver):
		return exitTakenOver
	}
	return exitFailed
}

// process is an agent.
type process struct {
	*exec.Cmd
	said  *saying
	ended chan struct{} // closed when it has
}

// saying is a log that may be read while it is written.
type saying struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *saying) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// startProcess starts an agent in a Node's namespace.
func startProcess(t *testing.T, node *nstest.Namespace, c *Config, args ...string) *process {
	t.Helper()
	return startBy(t, node.Command(os.Args[0], args...), c)
}

// startBy starts an agent by a command.
func startBy(t *testing.T, command *exec.Cmd, c *Config) *process {
	t.Helper()
	text, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{command, &saying{}, make(chan struct{})}
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), processEnv+"="+config), p.said, p.said
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("an agent said:\n%s", p.said)
		}
	})
	return p
}

// wantExit waits until the agent ends, and checks how.
func (p *process) wantExit(t *testing.T, code int) {
	t.Helper()
	select {
	case <-p.ended:
		if got := p.ProcessState.ExitCode(); got != code {
			t.Fatalf("the agent ended with %d, want %d", got, code)
		}
	case <-time.After(time.Minute):
		t.Fatal("the agent does not end")
	}
}

// wantSaid waits until the agent says something.
func (p *process) wantSaid(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.said.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the agent does not say %q", text)
		}
	}
}

// wantReady waits until an agent answers that is ready.
func wantReady(t *testing.T, c *Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := NewClient(c.Socket).Ready(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// askText is what an agent answers.
func askText(t *testing.T, c *Config, path string) string {
	t.Helper()
	text, err := NewClient(c.Socket).Get(t.Context(), path, url.Values{"stats": {"0"}, "names": {"1"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
