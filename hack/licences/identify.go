package main

import (
	"regexp"
	"strings"
)

// allowed are the licences, by SPDX name, of code that an Apache-2.0 program may link. They only
// ask that their text is passed on.
var allowed = map[string]bool{"Apache-2.0": true, "MIT": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "ISC": true}

// licence is a kind of licence and the phrases that its text has, as plain gives it.
type licence struct {
	name string
	has  []string
	not  []string
}

const (
	anyForm       = "redistribution and use in source and binary forms with or without modification are permitted provided that the following conditions are met"
	noPromotion   = "used to endorse or promote products derived from this software without specific prior written permission"
	advertisement = "all advertising materials mentioning features or use of this software must display"
)

// known are the licences that are recognised, with those that are refused. A file may have
// several.
var known = []licence{
	{"Apache-2.0", []string{"apache license version 2.0 january 2004", "terms and conditions for use reproduction and distribution"}, nil},
	{"Apache-2.0", []string{"licensed under the apache license version 2.0 the license you may not use this file except in compliance with the license"}, nil},
	{"MIT", []string{"permission is hereby granted free of charge to any person obtaining a copy of this software", "the above copyright notice and this permission notice shall be included in all copies or substantial portions of the software", "the software is provided as is without warranty of any kind"}, nil},
	{"BSD-4-Clause", []string{anyForm, advertisement}, nil},
	{"BSD-3-Clause", []string{anyForm, noPromotion}, []string{advertisement}},
	{"BSD-2-Clause", []string{anyForm}, []string{noPromotion, advertisement}},
	{"ISC", []string{"permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted", "the above copyright notice and this permission notice appear in all copies"}, nil},
	{"ISC", []string{"permission to use copy modify and distribute this software for any purpose with or without fee is hereby granted", "the above copyright notice and this permission notice appear in all copies"}, nil},
	{"MPL", []string{"mozilla public license"}, nil},
	{"GPL, LGPL or AGPL", []string{"general public license"}, nil},
	{"EPL", []string{"eclipse public license"}, nil},
	{"Business Source License", []string{"business source license"}, nil},
	{"Server Side Public License", []string{"server side public license"}, nil},
	{"Commons Clause", []string{"commons clause"}, nil},
	{"Creative Commons", []string{"creative commons"}, nil},
}

// notPlain matches what does not distinguish licences: comment marks, quotes, line ends and
// punctuation, except for the point in a version.
var notPlain = regexp.MustCompile(`[^a-z0-9.]+|\.(\W|$)`)

// plain returns a text in small letters, with one space between words.
func plain(text string) string {
	return strings.TrimSpace(notPlain.ReplaceAllString(strings.ToLower(text), " "))
}

// identify returns the names of the licences in a text, each once, in the order of known.
func identify(text string) (names []string) {
	words := " " + plain(text) + " "
	seen := map[string]bool{}
	for _, l := range known {
		if !seen[l.name] && hasAll(words, l.has) && !hasAny(words, l.not) {
			seen[l.name] = true
			names = append(names, l.name)
		}
	}
	return names
}

func hasAll(text string, phrases []string) bool {
	for _, p := range phrases {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func hasAny(text string, phrases []string) bool {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
