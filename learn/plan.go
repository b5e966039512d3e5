package learn

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// send and compare are given words, which are done in order in one sandbox: names of
// packets, and what happens between them.
//
//	restart   every switch ends, and another begins in its place with the connections
//	forget    the same, and the connections are lost
//	wait=30s  the clock is turned on by so much

// planned is one thing to do: a packet, or an event.
type planned struct {
	packet aPacket
	told   bool // it was named; others are sent because one that was named answers them
	event  string
	wait   time.Duration
}

const (
	eventRestart = "restart"
	eventForget  = "forget"
	eventWait    = "wait=" // and a time behind it
)

func isEvent(word string) bool {
	return word == eventRestart || word == eventForget || strings.HasPrefix(word, eventWait)
}

// newPlan is what words ask for; none ask for all packets. A packet that answers another
// has that one before it, unless it was sent already.
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

// planPacket adds a packet, and before it those that it answers and that are not sent yet.
func planPacket(plan []planned, all []aPacket, name string) ([]planned, error) {
	p, err := find(all, name)
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
			return p, fmt.Errorf("%s: a time is like 30s, 5m or 2h", word)
		}
	}
	return p, nil
}

// do does one thing. The way is nil for an event.
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

// happened tells an event, after it was done.
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
