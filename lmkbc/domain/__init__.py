"""Relations and labelled data of any domain, from Wikidata: properties become relations, SPARQL gives their rows."""
