"""Prints infra/template.yaml as JSON, without the functions and what names them.

LocalStack runs functions in Docker; without an engine a stack with functions in it can't be deployed.
"""

import json
import re
import sys

# The AWS CLI's own reader, which knows the short forms such as !Ref.
from awscli.customizations.cloudformation.yamlhelper import yaml_parse


def names(value, gone):
    """Whether a part of a template refers to one of these resources."""
    if isinstance(value, dict):
        if value.get("Ref") in gone:
            return True
        attribute = value.get("Fn::GetAtt")
        if attribute is not None and (attribute.split(".") if isinstance(attribute, str) else attribute)[0] in gone:
            return True
        text = value.get("Fn::Sub")
        text = text[0] if isinstance(text, list) else text or ""
        if any(name in gone for name in re.findall(r"\$\{(\w+)[.}]", text)):
            return True
        return any(names(part, gone) for part in value.values())
    if isinstance(value, list):
        return any(names(part, gone) for part in value)
    return False


with open(sys.argv[1], encoding="utf-8") as file:
    template = yaml_parse(file.read())
resources = template["Resources"]
gone = {name for name, resource in resources.items() if resource["Type"] == "AWS::Serverless::Function"}
while True:
    more = {name for name, resource in resources.items() if name not in gone and names(resource, gone)}
    if not more:
        break
    gone |= more
template["Resources"] = {name: resource for name, resource in resources.items() if name not in gone}
template["Outputs"] = {name: output for name, output in template["Outputs"].items() if not names(output, gone)}
template.pop("Globals")
print("left out: " + ", ".join(sorted(gone)), file=sys.stderr)
json.dump(template, sys.stdout, indent=1)
