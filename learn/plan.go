package learn

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// send and compare take words, and run them in order in one sandbox: names of packets, and
// events between them.
//
//	restart   each switch is replaced by a new one with its connections
//	forget    the same, without the connections
//	wait=30s  the clock is turned on by 30 seconds

// planned is a packet to send, or an event.
type planned struct {
	packet aPacket
	told   bool // named by the user; other packets are sent because a named one answers them
	event  string
	wait   time.Duration
}

const (
	eventRestart = "restart"
	eventForget  = "forget"
	eventWait    = "wait=" // and a duration
)

func isEvent(word string) bool {
	return word == eventRestart || word == eventForget || strings.HasPrefix(word, eventWait)
}

// newPlan makes a plan from words; no words mean all packets. Before an answer it puts the
// packet that it answers, unless that is in the plan already.
func newPlan(all []aPacket, words []string) (plan []planned, err error) {
	if len(words) == 0 {
		for _, p := range all {
			words = append(words, p.name)
		}
	}
	for _, word := range words {
		if isEvent(word) {
			p, err := newEvent(word)
			if err != nil {
				return nil, err
			}
			plan = append(plan, p)
			continue
		}
		if plan, err = planPacket(plan, all, word); err != nil {
			return nil, err
		}
		plan[len(plan)-1].told = true
	}
	return plan, nil
}

// planPacket adds a packet, and before it the packets that it answers, if they are missing.
func planPacket(plan []planned, all []aPacket, name string) ([]planned, error) {
	p, err := findPacket(all, name)
	if err != nil {
		return nil, err
	}
	if p.reply != "" && !slices.ContainsFunc(plan, func(x planned) bool { return x.packet.name == p.reply }) {
		if plan, err = planPacket(plan, all, p.reply); err != nil {
			return nil, err
		}
	}
	return append(plan, planned{packet: p}), nil
}

func newEvent(word string) (p planned, err error) {
	p.event = word
	if text, ok := strings.CutPrefix(word, eventWait); ok {
		if p.wait, err = time.ParseDuration(text); err != nil || p.wait < 0 {
			return p, fmt.Errorf("%s: expected a time such as 30s, 5m or 2h", word)
		}
	}
	return p, nil
}

// do runs one step. The way is nil for an event.
func (s *Sandbox) do(p planned) (*Way, error) {
	switch p.event {
	case "":
		return s.Send(p.packet, 0)
	case eventRestart, eventForget:
		return nil, s.Restart(p.event == eventRestart)
	}
	s.Turn(p.wait)
	return nil, nil
}

// happened reports an event.
func (s *Sandbox) happened(p planned) string {
	if p.wait > 0 || strings.HasPrefix(p.event, eventWait) {
		return fmt.Sprintf("%s: the clock is %s on", p.event, p.wait)
	}
	var has []string
	for _, n := range s.nodes {
		has = append(has, fmt.Sprintf("%d of %s", n.ct.Stats().Entries, n.name))
	}
	return fmt.Sprintf("%s: all switches are new ones; connections: %s", p.event, strings.Join(has, ", "))
}
