// Package unixctl takes the commands of ovs-appctl(8) on a daemon's control socket.
//
//   - appctl.go: the socket, and the list of commands.
//   - vlog.go: vlog/list, vlog/set and vlog/reopen: the log levels of modules.
//   - coverage.go: coverage/show and coverage/read-counter, without events.
//
// A control socket has the protocol JSON-RPC 1.0: the method is the command, and parameters and
// answer are text.
package unixctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antrail/antrail/vswitchd/jsonrpc"
)

// Command is a command that a daemon takes.
type Command struct {
	Name string
	// Usage is the arguments as list-commands shows them.
	Usage string
	// Min and Max are how many arguments the command takes.
	Min, Max int
	// Run returns the answer. The error's text is what ovs-appctl prints.
	Run func(ctx context.Context, args []string) (string, error)
	// Then, if not nil, is called after Run has succeeded and the answer was sent.
	Then func(args []string)
}

// Limits of a client, and how long it may take to read an answer.
const (
	maxRequest  = 1 << 20
	maxClients  = 64
	readTimeout = 10 * time.Second
)

// Server has the commands of one daemon. Several goroutines may use it.
type Server struct {
	log *slog.Logger

	mu       sync.Mutex
	commands map[string]Command
}

// New makes a server with the commands list-commands and version. version is the answer of the
// latter, such as "ovs-vswitchd (antrail) 1.2.3".
func New(log *slog.Logger, version string) *Server {
	s := &Server{log: log, commands: map[string]Command{}}
	s.Register(
		Command{Name: "list-commands", Run: s.listCommands},
		Command{Name: "version", Run: func(context.Context, []string) (string, error) { return version, nil }},
	)
	return s
}

// Register adds commands. A command of the same name is replaced.
func (s *Server) Register(commands ...Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range commands {
		s.commands[c.Name] = c
	}
}

// Refuse is a Command.Run that always fails with a reason.
func Refuse(why string) func(context.Context, []string) (string, error) {
	return func(context.Context, []string) (string, error) { return "", errors.New(why) }
}

// Exit is the command that ends a daemon: stop is called after the answer was sent. With
// takesCleanup, the command has the argument --cleanup.
func Exit(takesCleanup bool, stop func(cleanup bool)) Command {
	c := Command{Name: "exit", Run: func(context.Context, []string) (string, error) { return "", nil }}
	c.Then = func(args []string) { stop(slices.Contains(args, "--cleanup")) }
	if takesCleanup {
		c.Usage, c.Max = "[--cleanup]", 1
	}
	return c
}

// MemoryShow is the command memory/show: counts of what a daemon has in memory.
func MemoryShow(usage func() map[string]int) Command {
	return Command{Name: "memory/show", Run: func(context.Context, []string) (string, error) {
		counts, words := usage(), []string{}
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			words = append(words, fmt.Sprintf("%s:%d", name, counts[name]))
		}
		return strings.Join(words, " "), nil
	}}
}

func (s *Server) listCommands(context.Context, []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString("The available commands are:\n")
	for _, name := range slices.Sorted(maps.Keys(s.commands)) {
		fmt.Fprintf(&b, "  %-23s %s\n", name, s.commands[name].Usage)
	}
	return b.String(), nil
}

// Serve answers commands until ctx ends. It closes the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = ln.Close() })()
	var clients sync.WaitGroup
	defer clients.Wait()
	connected, end := context.WithCancel(ctx)
	defer end()
	room := make(chan struct{}, maxClients)
	for {
		c, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case room <- struct{}{}:
			clients.Go(func() {
				s.runClient(connected, c)
				<-room
			})
		default:
			s.log.Warn("a client of the control socket was refused: there are too many", "limit", maxClients)
			_ = c.Close()
		}
	}
}

// runClient answers the commands of one connection, one after the other.
func (s *Server) runClient(ctx context.Context, c net.Conn) {
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	r := jsonrpc.NewReader(c, maxRequest)
	for {
		m, err := r.Next()
		if err == nil {
			err = s.answer(ctx, c, m)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.log.Warn("a client of the control socket was disconnected", "err", err)
			}
			return
		}
	}
}

// answer runs a command and sends its answer. It ignores messages that are not requests.
func (s *Server) answer(ctx context.Context, c net.Conn, m *jsonrpc.Message) error {
	if !m.IsRequest() {
		return nil
	}
	reply, then := jsonrpc.Reply(m.ID, nil), func() {}
	if text, after, err := s.runCommand(ctx, m.Method, m.Params); err != nil {
		reply["error"] = endLine(err.Error())
	} else {
		reply["result"], then = endLine(text), after
	}
	b, err := jsonrpc.Encode(reply)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(readTimeout)); err != nil {
		return err
	}
	_, err = c.Write(b)
	then()
	return err
}

// endLine adds the newline that clients expect at the end of a text.
func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// runCommand runs a command with a message's parameters. The caller calls then after it has sent the
// answer.
func (s *Server) runCommand(ctx context.Context, name string, params []any) (text string, then func(), err error) {
	c, args, err := s.findCommand(name, params)
	if err != nil {
		return "", nil, err
	}
	text, err = c.Run(ctx, args)
	return text, func() {
		if c.Then != nil {
			c.Then(args)
		}
	}, err
}

// findCommand finds a command and checks its arguments.
func (s *Server) findCommand(name string, params []any) (c Command, args []string, err error) {
	s.mu.Lock()
	c, ok := s.commands[name]
	s.mu.Unlock()
	switch {
	case !ok:
		return c, nil, fmt.Errorf("%q is not a valid command (use \"list-commands\" to see a list of valid commands)", name)
	case len(params) < c.Min:
		return c, nil, fmt.Errorf("%q command requires at least %d arguments", name, c.Min)
	case len(params) > c.Max:
		return c, nil, fmt.Errorf("%q command takes at most %d arguments", name, c.Max)
	}
	for _, p := range params {
		text, ok := p.(string)
		if !ok {
			return c, nil, fmt.Errorf("%q command has non-string argument", name)
		}
		args = append(args, text)
	}
	return c, args, nil
}
